//! Full-text search in the memory of all campaigns, the newest items first.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, TextQuery, TextRow},
};

/// Finds valid items, the newest first. Of an agent: those that it wrote.
pub async fn find_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select id, written_at from dalsegno.memory_items
              where search @@ case when $2::uuid is null then dalsegno.text_query($1)
                                   else dalsegno.text_query($1) && format('%L', ':' || $2::uuid::text)::tsquery end
                and ($2::uuid is null or campaign_id = $2) and ($3::uuid[] is null or campaign_id = any ($3))
                and ($4::text is null or (origin = 'agent' and split_part(author, '/', 1) = $4))
                and ($5::text is null or author = case when $5 = 'main' then $4 else $4 || '/' || $5 end)
                and ($6::timestamptz is null or written_at >= $6) and (written_at, id) < ($7, $8)
                and revoked_at is null and (expires_at is null or expires_at > $9)
              limit $10),
           newest as materialized (select id from near order by written_at desc, id desc limit $11)
           select i.id, i.campaign_id, i.written_at as at, null::uuid as session_id, null::bigint as seq, i.author,
                  dalsegno.text_snippet(i.title || E'\n' || i.body, dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.memory_items as i on i.id = n.id
            order by i.written_at desc, i.id desc"#,
        query.words,
        query.campaign_id,
        query.within,
        query.agent,
        query.instance,
        query.since,
        query.before.at,
        query.before.id,
        now,
        MAX_MATCHES,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the texts of the memory"))
}
