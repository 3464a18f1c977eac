//! Full-text search in results of tools, in answers before a tool and in interrupted ones. Campaign and agent are those of the session.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Finds messages, the newest first. One that later sessions have inherited is found once, in the latest of them.
pub(super) async fn find(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_file_as!(
        TextRow,
        "src/domain/text_search/messages.sql",
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
    .map_err(StatementError::to("search the texts of messages"))
}
