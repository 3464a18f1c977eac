//! Reruns: calls of turns that are made again, to compare the answers. Nothing of the conversation refers to them.
//!
//! ```text
//! request ──▶ queued ──▶ done     the answer, with its tokens, cost and time
//!                    └─▶ failed   the reason
//! ```
//!
//! Race: the reruns of a campaign reserve at its budget for experiments at once. Each locks the row of that budget, and adds up the
//! reservations on the rows of the other queued reruns. A removed session takes its reservations with it.

mod error;
mod job;
mod original;
mod request;
mod reserve;
mod route;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    error::Error,
    job::RerunTurn,
    original::{OriginalCall, find_original},
    request::{RerunRequest, request},
    reserve::{ReserveError, release, reserve},
    route::{CallRoute, RerunOptions, RerunRoute, RerunRoutes},
};
use super::{
    StatementError,
    limits::{LimitEffect::Refused, LimitEntry},
    text,
    usage::{self, Tokens},
};
use crate::{queue::admin, transcript::ToolCall};

/// Maximum number of reruns of one request.
pub const MAX_TIMES: i32 = 20;
/// Maximum number of reruns of a turn: a list has no pages.
pub const MAX_OF_TURN: i64 = 500;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed("reruns of one request", MAX_TIMES as u64, Refused(Error::BAD_OPTION.code)),
    LimitEntry::fixed("reruns of a turn", MAX_OF_TURN as u64, Refused(Error::TOO_MANY.code)),
    LimitEntry::fixed(
        "bytes of the agent file of a rerun",
        request::AGENT_FILE_MAX_BYTES as u64,
        Refused(text::Error::TOO_LONG.code),
    ),
];

/// A call of a turn that was made again, or will be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rerun {
    pub id: Uuid,
    pub session_id: Uuid,
    pub turn: i32,
    /// The call of the turn, from 1.
    pub call: i32,
    /// Number of the rerun among those of the turn, from 1.
    pub number: i32,
    /// The words of the one who asked.
    #[schema(value_type = Object)]
    pub metadata: Json<Map<String, Value>>,
    pub state: State,
    pub provider: String,
    pub model: String,
    /// The temperature that replaced the one of the call. Null: it was not replaced.
    pub temperature: Option<f32>,
    /// The text of the agent file that replaced the agent's own. Null: none.
    pub agent_file: Option<String>,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    /// True if the request had the same bytes as that of the turn. Null: one of the two was not sent.
    pub is_same_request: Option<bool>,
    /// The text of the answer; empty if it has only tool calls.
    pub answer: Option<String>,
    /// True if the answer broke off at the limit for its length.
    pub partial: bool,
    /// Tool calls of the answer. They are not executed.
    #[schema(value_type = Vec<ToolCall>)]
    pub tool_calls: Json<Vec<ToolCall>>,
    /// Unknown token counts are null.
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cache_read_tokens: Option<i64>,
    pub cache_creation_tokens: Option<i64>,
    pub cost_micros: i64,
    /// True if the cost is 0 only because no price was set for the model.
    #[serde(default)]
    pub is_unpriced: bool,
    /// Milliseconds until the end of the answer.
    pub took_ms: Option<i32>,
    /// Number of the row in the ledger.
    pub ledger_id: Option<i64>,
    /// The reason why there is no answer.
    pub error: Option<String>,
    #[serde(skip)]
    pub job_id: Option<i64>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = RerunState)]
pub enum State {
    Queued,
    Done,
    Failed,
}

impl Rerun {
    /// Returns the id of the call's conversation at a provider that keeps conversations, and of its folder. It is that of the rerun: an
    /// erasure has to find the files of a call whose worker was killed.
    pub fn external_id(&self) -> Uuid {
        self.id
    }
}

/// The end of a rerun.
#[derive(Debug, Clone, Copy)]
pub struct RerunEnd<'a> {
    pub result: Result<Answer<'a>, &'a str>,
    pub is_same_request: Option<bool>,
    pub tokens: Tokens,
    pub cost_micros: i64,
    pub took_ms: Option<i32>,
    pub ledger_id: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub text: &'a str,
    /// True if the answer broke off at the limit for its length.
    pub partial: bool,
    pub tool_calls: &'a [ToolCall],
}

impl<'a> RerunEnd<'a> {
    /// Ends a rerun without a call that was charged.
    pub fn without_call(reason: &'a str) -> Self {
        Self {
            result: Err(reason),
            is_same_request: None,
            tokens: Tokens::default(),
            cost_micros: 0,
            took_ms: None,
            ledger_id: None,
        }
    }
}

macro_rules! select_reruns {
    ($tail:literal, $($parameter:expr),*) => {
        sqlx::query_as!(
            Rerun,
            r#"select id, session_id, turn, call, number, metadata as "metadata: Json<Map<String, Value>>", state as "state: State", provider, model, temperature, agent_file, created_at,
                      ended_at, is_same_request, answer, partial, coalesce(tool_calls, '[]') as "tool_calls!: Json<Vec<ToolCall>>", input_tokens,
                      output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros, false as "is_unpriced!", took_ms, ledger_id, error, job_id
                 from dalsegno.reruns where "# + $tail,
            $($parameter),*
        )
    };
}

/// Lists the reruns of a turn, in order. Shows queued ones as failed whose job has ended without them: it was cancelled, or its worker was
/// lost too often.
pub async fn list(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<Rerun>, Error> {
    let found = read_of_turn(&mut *conn, session_id, turn).await?;
    let queued = found.iter().filter(|rerun| rerun.state == State::Queued);
    let jobs: Vec<i64> = queued.filter_map(|rerun| rerun.job_id).collect();
    let ended = match jobs.is_empty() {
        true => Vec::new(),
        false => admin::list_ended_jobs(&mut *conn, &jobs).await?,
    };
    if ended.is_empty() {
        return Ok(mark_unpriced(conn, found).await?);
    }
    // A job ends after its rerun, so these rows are read after the jobs.
    let mut found = read_of_turn(&mut *conn, session_id, turn).await?;
    for rerun in found.iter_mut().filter(|rerun| rerun.state == State::Queued) {
        if let Some(job) = ended.iter().find(|job| rerun.job_id == Some(job.id)) {
            rerun.state = State::Failed;
            rerun.error = Some(match &job.error {
                Some(reason) => format!("its job {} has ended: {reason}", job.id),
                None => format!("its job {} has ended without an answer", job.id),
            });
        }
    }
    Ok(mark_unpriced(conn, found).await?)
}

/// Marks the reruns whose calls have no price.
async fn mark_unpriced(
    conn: &mut PgConnection,
    mut reruns: Vec<Rerun>,
) -> Result<Vec<Rerun>, StatementError> {
    let calls: Vec<i64> = reruns.iter().filter_map(|rerun| rerun.ledger_id).collect();
    let unpriced = usage::calls_without_price(conn, &calls).await?;
    for rerun in &mut reruns {
        rerun.is_unpriced = rerun.ledger_id.is_some_and(|id| unpriced.contains(&id));
    }
    Ok(reruns)
}

async fn read_of_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<Rerun>, StatementError> {
    select_reruns!("session_id = $1 and turn = $2 order by number", session_id, turn)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("list the reruns of a turn"))
}

/// Lists the [external ids](Rerun::external_id) of all reruns of these sessions.
pub(in crate::domain) async fn external_ids_of(
    executor: impl PgExecutor<'_>,
    sessions: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!("select id from dalsegno.reruns where session_id = any($1)", sessions)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("list the reruns of sessions"))
}

/// Finds a rerun; `None` if it was removed with its session.
pub async fn find(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Option<Rerun>, StatementError> {
    select_reruns!("id = $1", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read a rerun"))
}

/// Ends a rerun, unless it has ended or was removed.
pub async fn end(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    end: &RerunEnd<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let (answer, error) = (end.result.ok(), end.result.err());
    sqlx::query!(
        "update dalsegno.reruns
            set state = case when $2::text is null then 'failed' else 'done' end, answer = $2, tool_calls = $3, error = $4, ended_at = $5,
                is_same_request = $6, input_tokens = $7, output_tokens = $8, cache_read_tokens = $9, cache_creation_tokens = $10,
                cost_micros = $11, took_ms = $12, ledger_id = $13, partial = $14, reserved_micros = null
          where id = $1 and state = 'queued'",
        id,
        answer.map(|answer| answer.text),
        answer.map(|answer| Json(answer.tool_calls)) as _,
        error,
        now,
        end.is_same_request,
        end.tokens.input,
        end.tokens.output,
        end.tokens.cache_read,
        end.tokens.cache_creation,
        end.cost_micros,
        end.took_ms,
        end.ledger_id,
        answer.is_some_and(|answer| answer.partial),
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the end of a rerun"))
}
