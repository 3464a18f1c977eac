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

/// What a session was shown its successor was shown, which goes on from the same transcript.
pub async fn inherit_showings(
    executor: impl PgExecutor<'_>,
    from: Uuid,
    to: Uuid,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.fact_showings (session_id, fact_id, campaign_id, shown_at)
         select $2, s.fact_id, s.campaign_id, s.shown_at
           from dalsegno.fact_showings as s
           join (select id from dalsegno.facts
                  where id in (select fact_id from dalsegno.fact_showings where session_id = $1)
                  order by id for key share) as f on f.id = s.fact_id
          where s.session_id = $1
         on conflict (session_id, fact_id) do nothing",
        from,
        to,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("hand on which facts a session was shown"))
}
