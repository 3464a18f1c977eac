//! Tasks: what somebody asked an agent to do, and what came of it.
//!
//! A task and its job are written in one transaction, and ended in one. The job's payload says what was asked, so that
//! an idempotency key finds the same task for the same question and refuses it for another.

mod add;
mod asked;
mod bulk;
mod cancel_batch;
mod cancellation;
mod cascade;
mod dead_letter;
mod detail;
mod digest;
mod erase;
mod explain;
mod fan_out;
mod flow;
mod follow;
mod interrupt;
mod keys;
mod line;
mod links;
mod list;
mod lost;
mod matching;
mod node;
mod posted;
mod recurring;
mod results;
mod state;
mod store;
mod waiting;
mod waits;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use uuid::Uuid;

use self::state::end_without_turn;
pub(super) use self::state::ended;
pub use self::{
    add::{Added, Config, New, lane, lanes_of},
    asked::{Request, added_by_agents, asked_by_people},
    bulk::{BulkError, MAX_TASKS, Placed, add_many},
    cancel_batch::{BATCH, Batch, cancel_batch},
    cancellation::{Below, Cancellation, CancelledJob},
    dead_letter::{RetriedJob, forget_dead_letters, retry_job},
    detail::{Detail, detail},
    erase::{ERASED, Erased, count_open, erase_some, open_of},
    explain::{Explanation, explain, explain_alone},
    fan_out::{
        Children, FannedOut, MAX_CHILDREN, child_key, count_of_family, depth, fan_out,
        handed_out_by, hold_parent,
    },
    flow::{FlowTask, flow_id_of, hold_of_flow, of_flow},
    follow::{Follow, News, wait},
    interrupt::{How, Interrupted, interrupt, interrupt_agent, is_asked_to_stop},
    line::{BadLine, Line},
    links::{After, FlowStep, Links, MAX_PREDECESSORS, OnFailure},
    list::{
        Addressee, Filter, Owner, addressee, by_job, find, get, has_ended, in_campaign, list,
        of_conversation, owner,
    },
    lost::{end_lost, gone, live_jobs},
    matching::{Matching, count_matching, matching},
    posted::{Tree, count_of_tree, set_post},
    recurring::AddTask,
    results::{Outcome, outcomes, wait_for_all},
    state::{
        Cancelled, End, admit, cancel, cancel_job, cancel_silently, charge, end,
        longest_busy_since, no_longer_waits, retry, wait_for_provider, wait_longer,
    },
    store::{add, add_together},
    waiting::{awaited, queued_jobs},
    waits::{
        Predecessor, Stretch, WaitedFor, Waiting, due_waits, end_wait, predecessors, wait_aside,
        waits_of,
    },
};
use super::{
    Failed,
    amount::Refusal,
    campaigns, posts,
    sessions::{self, resolve::Mode},
    text,
};
use crate::queue::{self, Backoff, Job, LaneFailure, Policy};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Task {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub session_mode: Mode,
    pub state: State,
    pub prompt: String,
    pub result: Option<String>,
    pub error: Option<String>,
    pub budget_micros: Option<i64>,
    pub budget_tokens: Option<i64>,
    pub spent_micros: i64,
    pub spent_tokens: i64,
    pub job_id: i64,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = TaskState)]
pub enum State {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

/// The job that runs a task. The task is found by the job's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTurn {
    /// The digest of the question. The queue compares it under an idempotency key.
    pub asked: String,
}

/// The job that runs a task which has waited for others. A kind of its own, so that no binary takes it that would not tell the agent
/// what they came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunJoinedTurn {
    /// As [`RunTurn::asked`].
    pub asked: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no task {0}: `dalsegno task ls` lists them")]
    Unknown(Uuid),
    #[error(
        "no task belongs to job {0}, which was not put on the queue by `task add`: `dalsegno job show {0}` prints what it is"
    )]
    NoTaskOfJob(i64),
    #[error(
        "task {id} has already ended as {}: `dalsegno task show {id}` prints what came of it{}", .state.as_str(),
        again(*.state, *.id)
    )]
    Ended { id: Uuid, state: State },
    #[error("the words of task {0} were erased with its campaign: ask in another one")]
    Erased(Uuid),
    #[error(
        "task {id} has not ended, it is {}: wait for its end, or `dalsegno task cancel {id}` before it is tried again",
        .state.as_str()
    )]
    NotEnded { id: Uuid, state: State },
    /// Whoever decided something for it had another job in mind.
    #[error(
        "task {0} has been put on the queue again at this moment: look at it, and repeat what you want of it"
    )]
    Requeued(Uuid),
    #[error(
        "there is no task {0} in this campaign that could be waited for: name one that exists there, or one that comes before in \
         the same request"
    )]
    NoPredecessor(String),
    #[error(
        "a task waits for at most {MAX_PREDECESSORS} others, not for {0}: let some tasks wait for parts of them, and one for those"
    )]
    TooManyPredecessors(usize),
    #[error("1 to {MAX_CHILDREN} children can be handed out at once, not {0}")]
    NChildren(usize),
    #[error(
        "task {id} is {}, and hands nothing out: its children are added while it runs or after it is done", .state.as_str()
    )]
    NoParent { id: Uuid, state: State },
    #[error(
        "task {0} is being cancelled, and hands nothing out any more: `dalsegno task show {0}` shows what becomes of it"
    )]
    BeingCancelled(Uuid),
    #[error("nothing runs in session {0} at this moment: `dalsegno task ls` shows what waits")]
    NothingRuns(Uuid),
    #[error(
        "the idempotency key `{0}` has been used for another question: use another key, or ask the same as before"
    )]
    KeyTaken(String),
    #[error(
        "`{0}` is no name of an instance: write lower-case letters, digits, - and _, at most 64"
    )]
    Instance(String),
    #[error(
        "the idempotency key has {n_chars} characters: 1 to 195 are fine, and no NUL; use a hash of a longer one"
    )]
    Key { n_chars: usize },
    #[error("the priority is {0}: 0 is the most urgent, 100 is usual, 32767 is the last")]
    Priority(i32),
    #[error("a budget of {0} allows nothing: leave it out, or give more than 0")]
    EmptyBudget(i64),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Budget(#[from] Refusal),
    #[error(transparent)]
    Post(#[from] posts::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Error {
    pub(crate) fn transaction(source: sqlx::Error) -> Self {
        Failed { action: "open or commit a transaction for a task", source }.into()
    }

    /// Whether it is known that the call has written nothing: it was refused before the database was asked, or the database itself
    /// says that the statement has failed. A connection that was lost may have been lost behind the commit.
    pub fn has_written_nothing(&self) -> bool {
        let Self::Database(failed) = self else { return true };
        let raised = failed.source.as_database_error();
        let raised = raised.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        // A session that is ended from outside says so as FATAL, which a commit may have come before.
        raised.is_some_and(|error| error.severity() == PgSeverity::Error)
    }
}

/// What is left to do for a task that ended without an answer.
fn again(state: State, id: Uuid) -> String {
    match state {
        State::Failed | State::Cancelled => {
            format!(", `dalsegno task retry {id}` runs it again")
        }
        _ => String::new(),
    }
}

impl Job for RunTurn {
    const KIND: &'static str = "run_turn";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            max_attempts: 5,
            backoff: Backoff::default(),
            // Providers have timeouts of their own, which know what they wait for.
            deadline: None,
            lane_failure: LaneFailure::Continue,
        }
    }
}

impl Job for RunJoinedTurn {
    const KIND: &'static str = "run_joined_turn";

    fn policy() -> Policy {
        RunTurn::policy()
    }
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}
