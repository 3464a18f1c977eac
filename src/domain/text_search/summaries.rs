//! Full-text search in the summaries of compactions. Campaign and agent are those of the session.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Finds the summaries of compactions that were applied, the newest first.
pub(super) async fn find(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_file_as!(
        TextRow,
        "src/domain/text_search/summaries.sql",
        query.words,
        span.weeks,
        query.campaign_id,
        query.within,
        query.agent,
        query.instance,
        query.since,
        span.before.at,
        span.before.id,
        MAX_MATCHES,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the texts of summaries"))
}
