//! Records of the facts that sessions were shown.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Showings of a fact that are read at most to find the newest ones. Their index has no times: of a fact with more, the newest may be missing.
const MAX_READ: i64 = 10_000;

/// The record that a session was shown a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactShowing {
    /// The session. It may be removed.
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    /// The last time, to a day.
    pub shown_at: DateTime<Utc>,
}

/// Lists the sessions that were shown a fact, the last shown first, among `MAX_READ` of its showings.
pub async fn list_showings(
    executor: impl PgExecutor<'_>,
    fact: Uuid,
    limit: i64,
) -> Result<Vec<FactShowing>, StatementError> {
    sqlx::query_as!(
        FactShowing,
        r#"select s.session_id as "session_id!", s.campaign_id as "campaign_id!", s.shown_at as "shown_at!"
             from (select session_id, campaign_id, shown_at from dalsegno.fact_showings where fact_id = $1 limit $2) as s
            order by s.shown_at desc, s.session_id desc limit $3"#,
        fact,
        MAX_READ,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the sessions that were shown a fact"))
}

/// Records that a session was shown these facts. A fact that was removed meanwhile is skipped.
pub async fn record_showings(
    executor: impl PgExecutor<'_>,
    (session_id, campaign_id): (Uuid, Uuid),
    facts: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    if facts.is_empty() {
        return Ok(());
    }
    // Locked in one order, so that two sessions that are shown the same facts cannot deadlock.
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
    .map_err(StatementError::to("record the facts shown to a session"))
}

/// Copies the records of a session to its successor, which continues the same transcript.
pub async fn inherit_showings(
    executor: impl PgExecutor<'_>,
    from: Uuid,
    to: Uuid,
) -> Result<(), StatementError> {
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
    .map_err(StatementError::to("copy the record of shown facts to the next session"))
}
