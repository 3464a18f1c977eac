//! Outcomes of several tasks, for the agent that requested them.
//!
//! Prompts are not read, because the caller has written them. Results may be long: those after the one that reaches the size limit are
//! left for the next call.

use std::time::Duration;

use serde_json::Value;
use sqlx::{PgExecutor, PgPool};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::State;
use crate::domain::StatementError;

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub id: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: State,
    pub result: Option<String>,
    pub result_json: Option<Value>,
    pub error: Option<String>,
}

/// Waits until all of these tasks have ended, or for `limit`. Returns the number of open tasks.
pub async fn wait_for_all(
    pool: &PgPool,
    ids: &[Uuid],
    limit: Duration,
) -> Result<i64, StatementError> {
    let until = Instant::now() + limit;
    loop {
        let n_open = count_open(pool, ids).await?;
        let left = until.saturating_duration_since(Instant::now());
        if n_open == 0 || left.is_zero() {
            return Ok(n_open);
        }
        sleep(PAUSE.min(left)).await;
    }
}

/// Reads outcomes in the order of `ids`, up to the one whose result reaches `max_bytes`.
pub async fn outcomes(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    max_bytes: i64,
) -> Result<Vec<Outcome>, StatementError> {
    sqlx::query_as!(
        Outcome,
        r#"with sized as (
               select t.id, o.place, sum(coalesce(octet_length(t.result), 0)) over (order by o.place)
                      - coalesce(octet_length(t.result), 0) as bytes_before
                 from unnest($1::uuid[]) with ordinality as o (id, place) join dalsegno.tasks as t on t.id = o.id)
           select t.id, t.agent, t.instance, t.state as "state: State", t.result, t.result_json, t.error
             from sized as s join dalsegno.tasks as t on t.id = s.id
            where s.bytes_before < $2
            order by s.place"#,
        ids,
        max_bytes,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the results of tasks"))
}

async fn count_open(executor: impl PgExecutor<'_>, ids: &[Uuid]) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.tasks where id = any($1) and ended_at is null"#,
        ids,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the tasks that have not ended"))
}
