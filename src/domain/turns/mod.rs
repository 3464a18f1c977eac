//! Turns: attempts of a task in a session. A turn begins before the provider is called, and ends once.
//!
//! ```text
//! begin ──▶ running ──▶ done          commit: answer, ledger, counters, result
//!    │                └▶ failed       fail: the error; the session may be rebuilt. With the flag `put_off`: no attempt is used up
//!    │                └▶ interrupted  interrupt: what had arrived; by its own worker,
//!                                     or by the next one after a crash; cancel: the same, and the task ends
//! ```
//!
//! A turn whose call is a message batch stays running while no worker has it ([`super::batches`]). The run that finds the answer takes it
//! over, with its lease.

mod batch;
mod charges;
mod detail;
mod error;
mod history_check;
mod jobs;
mod lost;
mod partial_output;
mod place;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    batch::{hold_running, take_over},
    charges::{TurnCharge, charges},
    detail::{Detail, ListedTurn, detail, list, unpriced_turns},
    error::Error,
    history_check::HistoryCheck,
    jobs::jobs_of_tasks,
    lost::{TaskWithoutTurn, clean_up, interrupt_leftover, interrupt_lost, left_running},
    partial_output::MAX_BYTES as PARTIAL_OUTPUT_MAX_BYTES,
    place::find_session,
};
use super::{StatementError, failovers::ChainChoice};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Turn {
    pub session_id: Uuid,
    pub number: i32,
    pub task_id: Uuid,
    pub attempt: i16,
    pub job_id: i64,
    pub lease: i64,
    pub state: State,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_read_tokens: i64,
    pub cache_creation_tokens: i64,
    pub cost_micros: i64,
    pub calls: i32,
    /// Notes for people. `put_off`: the turn failed only because its provider is busy, or its budget has no space.
    pub flags: Vec<String>,
    pub error: Option<String>,
    /// The proof that the model saw the history. Null if the turn has no answer.
    pub history_check: Option<HistoryCheck>,
    /// The model of the agent's chain that the turn was given to. Null: the agent has one model.
    #[serde(default)]
    #[schema(value_type = Option<ChainChoice>)]
    pub chain: Option<Json<ChainChoice>>,
}

#[cfg(test)]
impl Turn {
    /// Builds a turn for tests that has ended as it began, at `at`.
    pub fn example(state: State, at: DateTime<Utc>) -> Self {
        Self {
            session_id: Uuid::from_u128(3),
            number: 4,
            task_id: Uuid::from_u128(1),
            attempt: 1,
            job_id: 7,
            lease: 9,
            state,
            started_at: at,
            ended_at: (state != State::Running).then_some(at),
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cache_creation_tokens: 0,
            cost_micros: 0,
            calls: 0,
            flags: Vec::new(),
            error: None,
            history_check: None,
            chain: None,
        }
    }
}

/// Flag of a turn whose call was an ordinary one, because it has files: a batch is stored without them.
pub const NOT_BATCHED: &str = "not_batched: the call has files";

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = TurnState)]
pub enum State {
    Running,
    Done,
    Interrupted,
    Failed,
}

/// Flag of a failed turn that was put off: its provider is busy, or its budget has no space. It used up no attempt.
pub const PUT_OFF: &str = "put_off";

impl Turn {
    /// Returns its session and its number there.
    pub fn place(&self) -> (Uuid, i32) {
        (self.session_id, self.number)
    }

    /// Returns true if the turn was put off: the task is not to blame, and waits.
    pub fn is_put_off(&self) -> bool {
        self.state == State::Failed && self.flags.iter().any(|flag| flag == PUT_OFF)
    }

    /// Returns the state for people.
    pub fn state_word(&self) -> &'static str {
        match self.state {
            State::Running => "running",
            State::Done => "done",
            State::Interrupted => "interrupted",
            State::Failed if self.is_put_off() => "put off",
            State::Failed => "failed",
        }
    }
}

/// Selects turns; `$rest` follows the name of the table.
macro_rules! select_turns {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Turn,
            r#"select session_id, number, task_id, attempt, job_id, lease, state as "state: State", started_at, ended_at, input_tokens,
                  output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros, calls, flags, error,
                  history_check as "history_check: HistoryCheck", chain as "chain: Json<ChainChoice>"
             from dalsegno.turns"# + $rest,
            $($argument),+
        )
    };
}

/// Lists the attempts of a task, in order.
pub async fn of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Vec<Turn>, StatementError> {
    select_turns!(" where task_id = $1 order by started_at, number", task_id,)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("list the turns of a task"))
}

/// Reads one turn.
pub async fn find(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    number: i32,
) -> Result<Option<Turn>, StatementError> {
    select_turns!(" where session_id = $1 and number = $2", session_id, number,)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read a turn"))
}

/// A turn whose answer was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneTurn {
    pub number: i32,
    /// The last post that the session had seen at its end. `None`: an older version has ended it.
    pub board_cursor: Option<i64>,
}

/// Finds the turn with this number if it is done, or the last one that is.
pub async fn last_done(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    number: Option<i32>,
) -> Result<Option<DoneTurn>, StatementError> {
    sqlx::query_as!(
        DoneTurn,
        "select number, board_cursor from dalsegno.turns
          where session_id = $1 and state = 'done' and ($2::integer is null or number = $2) order by number desc limit 1",
        session_id,
        number,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the turn to fork at"))
}

/// Returns true if a turn still runs under this lease.
pub async fn is_running(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    number: i32,
    lease: i64,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.turns
                           where session_id = $1 and number = $2 and lease = $3 and state = 'running') as "is_running!""#,
        session_id,
        number,
        lease,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check whether a turn is running"))
}

/// Returns true if a session has turns of other tasks.
pub async fn has_turns_of_others(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    task_id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.turns where session_id = $1 and task_id <> $2) as "others!""#,
        session_id,
        task_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find turns of other tasks"))
}

/// Lists the turns of a session before the given number, the newest first.
pub async fn of_session(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<Turn>, StatementError> {
    select_turns!(
        " where session_id = $1 and number < coalesce($2, 2147483647) order by number desc limit $3",
        session_id,
        before,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the turns of a session"))
}

/// Removes the turns of these sessions permanently. If turns are append-only, the transaction must have announced the removal.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.turns where session_id = any($1)", session_ids)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove the turns of sessions"))
}
