//! Full-text search in the briefs and client contexts of campaigns.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Finds current briefs and client contexts, the newest first.
pub async fn find_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select v.campaign_id, v.version, v.changed_at from dalsegno.campaign_versions as v
              where dalsegno.text_words(v.brief || E'\n' || coalesce(v.client_context, ''), v.changed_at)
                    @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
                and not exists (select from dalsegno.campaign_versions as l where l.campaign_id = v.campaign_id and l.version > v.version)
                and ($3::uuid is null or v.campaign_id = $3) and ($4::uuid[] is null or v.campaign_id = any ($4))
                and ($5::timestamptz is null or v.changed_at >= $5) and (v.changed_at, v.campaign_id) < ($6, $7)
              limit $8),
           newest as materialized (select campaign_id, version from near order by changed_at desc, campaign_id desc limit $9)
           select v.campaign_id as id, v.campaign_id as "campaign_id?", v.changed_at as at, null::uuid as session_id,
                  v.version::bigint as "seq?", coalesce(v.changed_by, '') as "author!",
                  dalsegno.text_snippet(v.brief || E'\n' || coalesce(v.client_context, ''), dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.campaign_versions as v on v.campaign_id = n.campaign_id and v.version = n.version
            order by v.changed_at desc, v.campaign_id desc"#,
        query.words,
        span.weeks,
        query.campaign_id,
        query.within,
        query.since,
        span.before.at,
        span.before.id,
        MAX_MATCHES,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the texts of briefs"))
}
