//! Which facts a session was shown.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Remembers that a session was shown these. One that is gone meanwhile is passed over.
pub async fn show(
    executor: impl PgExecutor<'_>,
    (session_id, campaign_id): (Uuid, Uuid),
    facts: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    if facts.is_empty() {
        return Ok(());
    }
    // Locked in one order, so that two that are shown the same facts never wait for each other in a circle.
    sqlx::query!(
        "insert into dalsegno.fact_showings as s (session_id, fact_id, campaign_id, shown_at)
         select $1, f.id, $2, $4
           from (select id from dalsegno.facts where id = any($3) order by id for key share) as f
         on conflict (session_id, fact_id) do update set shown_at = excluded.shown_at
            where s.shown_at < excluded.shown_at - interval '1 day'",
        session_id,
        campaign_id,
        facts,
        now,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("remember which facts a session was shown"))
}
