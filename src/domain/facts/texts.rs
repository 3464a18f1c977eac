//! Full-text search in the facts about all users, the newest first.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, TextQuery, TextRow},
};

/// Finds valid facts, the newest first. The author of a hit is the user that the fact is about.
pub async fn find_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select id, recorded_at from dalsegno.facts
              where search @@ dalsegno.text_query($1)
                and ($2::uuid is null or campaign_id = $2)
                and ($3::text is null or trust = 'agent' and split_part(author, '/', 1) = $3)
                and ($4::text is null or author = case when $4 = 'main' then $3 else $3 || '/' || $4 end)
                and ($5::timestamptz is null or recorded_at >= $5) and (recorded_at, id) < ($6, $7)
                and valid_until is null and (expires_at is null or expires_at > $8)
              limit $9),
           newest as materialized (select id from near order by recorded_at desc, id desc limit $10)
           select f.id, f.campaign_id, f.recorded_at as at, f.session_id, null::bigint as seq, f.user_name as author,
                  dalsegno.text_snippet(f.attribute || ': ' || f.text, dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.facts as f on f.id = n.id
            order by f.recorded_at desc, f.id desc"#,
        query.words,
        query.campaign_id,
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
    .map_err(StatementError::to("search the texts of facts"))
}
