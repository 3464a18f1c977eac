//! Errors of tasks, and their classes.

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use uuid::Uuid;

use super::{
    filter::MAX_TEXT_CHARS,
    links::{MAX_CHILDREN, MAX_FLOW_TEMPLATES, MAX_PREDECESSORS},
    task::State,
};
use crate::{
    domain::{
        StatementError, amount, campaigns,
        class::{BAD_ARGUMENT, Class, Classify, Kind},
        labels, parameters, posts, result_schemas, sessions,
        task_files::attachments,
        text,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no task {0}: `dalsegno task ls` lists them")]
    Unknown(Uuid),
    #[error(
        "no task belongs to job {0}, which was not put on the queue by `task add`: `dalsegno job show {0}` prints what it is"
    )]
    NoTaskOfJob(i64),
    #[error(
        "task {id} has already ended as {}: `dalsegno task show {id}` prints its result{}", .state.as_str(),
        retry_hint(*.state, *.id)
    )]
    Ended { id: Uuid, state: State },
    #[error(
        "the prompt of task {0} was erased with its campaign: add a new task in another campaign"
    )]
    Erased(Uuid),
    #[error(
        "cannot retry task {id}: it is still {}; wait for its end, or cancel it first with `dalsegno task cancel {id}`",
        .state.as_str()
    )]
    NotEnded { id: Uuid, state: State },
    #[error("task {id} has not ended: it is {}; `dalsegno task show {id} --wait 10m` waits for its end", .state.as_str())]
    Open { id: Uuid, state: State },
    #[error(
        "cannot change the priority of task {0}: a worker runs it, and the priority only orders waiting tasks; `dalsegno task show {0}` shows its state"
    )]
    NotWaiting(Uuid),
    /// The task has another job than the one that the decision was made for.
    #[error(
        "task {0} was enqueued again at the same time: check its state with `dalsegno task show {0}`, then repeat the command"
    )]
    Requeued(Uuid),
    #[error(
        "there is no task {0} in this campaign to wait for: name an existing one, or an earlier one of the same request"
    )]
    NoPredecessor(String),
    #[error(
        "a task can depend on at most {MAX_PREDECESSORS} others, not on {0}: let intermediate tasks wait for parts of them"
    )]
    TooManyPredecessors(usize),
    #[error("{0} children at once are not possible: add 1 to {MAX_CHILDREN}")]
    NChildren(usize),
    #[error(
        "cannot add children to task {id}: it is {}, and must be running or done", .state.as_str()
    )]
    NoParent { id: Uuid, state: State },
    #[error(
        "cannot add children to task {0}: it is being cancelled; `dalsegno task show {0}` shows its state"
    )]
    BeingCancelled(Uuid),
    #[error("session {0} has no running turn: `dalsegno task ls` lists its tasks")]
    NothingRuns(Uuid),
    #[error(
        "the idempotency key `{0}` was used for another task: use another key, or repeat the first request unchanged"
    )]
    KeyTaken(String),
    #[error("invalid flow template `{0}`: use a name that `dalsegno flow templates` prints")]
    FlowTemplate(String),
    #[error("the task lists {0} flow templates: list at most {MAX_FLOW_TEMPLATES}")]
    TooManyFlowTemplates(usize),
    #[error("invalid instance `{0}`: use lower-case letters, digits, - and _, at most 64")]
    Instance(String),
    #[error(
        "the idempotency key has {n_chars} characters: use 1 to 195 without NUL, for example a hash"
    )]
    Key { n_chars: usize },
    #[error("the priority {0} is out of range: use 0 (most urgent) to 32767; 100 is the default")]
    Priority(i32),
    #[error("the budget {0} must be more than 0: raise it, or leave it out for no limit")]
    EmptyBudget(i64),
    #[error("the answer may not take {0} s: give it one hour (3600) to seven days (604800)")]
    Within(i32),
    #[error(
        "the search text of the filter has {0} characters: use 1 to {MAX_TEXT_CHARS}, or leave it out"
    )]
    FilterText(usize),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Labels(#[from] labels::Error),
    #[error(transparent)]
    Parameters(#[from] parameters::Error),
    #[error(transparent)]
    ResultSchema(#[from] result_schemas::Error),
    #[error(transparent)]
    Attachment(#[from] attachments::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Budget(#[from] amount::Refusal),
    #[error(transparent)]
    Post(#[from] posts::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub(crate) fn transaction(source: sqlx::Error) -> Self {
        StatementError { action: "open or commit a transaction for a task", source }.into()
    }

    /// Returns true if the call surely wrote nothing. It was refused before the database was asked, or the database reports that the
    /// statement failed. After a lost connection this is unknown: it may have been lost after the commit.
    pub fn has_written_nothing(&self) -> bool {
        let Self::Database(failed) = self else { return true };
        let raised = failed.source.as_database_error();
        let raised = raised.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        // A session that is terminated reports FATAL, possibly after its commit.
        raised.is_some_and(|error| error.severity() == PgSeverity::Error)
    }
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_task");
    pub const ENDED: Class = Class::of(Kind::Conflict, "task_ended");
    pub const ERASED: Class = Class::of(Kind::Conflict, "erased");
    pub const NOT_ENDED: Class = Class::of(Kind::Conflict, "task_not_ended");
    pub const NOT_WAITING: Class = Class::of(Kind::Conflict, "task_not_waiting");
    /// The same call can succeed now.
    pub const REQUEUED: Class =
        Class { retryable: true, ..Class::of(Kind::Conflict, "task_requeued") };
    pub const NOTHING_RUNS: Class = Class::of(Kind::Conflict, "nothing_runs");
    pub const BAD_INSTANCE: Class = Class::of(Kind::Invalid, "bad_instance");
    pub const BAD_FLOW_TEMPLATES: Class = Class::of(Kind::Invalid, "bad_flow_templates");
    pub const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_idempotency_key");
    pub const KEY_TAKEN: Class = Class::of(Kind::Conflict, "idempotency_conflict");
    pub const EMPTY_BUDGET: Class = Class::of(Kind::Invalid, "empty_budget");
    pub const BAD_FILTER: Class = Class::of(Kind::Invalid, "bad_filter");
    pub const NO_PARENT: Class = Class::of(Kind::Conflict, "no_parent");
    pub const NO_PREDECESSOR: Class = Class::of(Kind::NotFound, "unknown_predecessor");
    pub const TOO_MANY_PREDECESSORS: Class = Class::of(Kind::Invalid, "too_many_predecessors");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) | Self::NoTaskOfJob(_) => Self::UNKNOWN,
            Self::Ended { .. } => Self::ENDED,
            Self::Erased(_) => Self::ERASED,
            Self::NotEnded { .. } | Self::Open { .. } => Self::NOT_ENDED,
            Self::NotWaiting(_) => Self::NOT_WAITING,
            Self::Requeued(_) => Self::REQUEUED,
            Self::NoPredecessor(_) => Self::NO_PREDECESSOR,
            Self::TooManyPredecessors(_) => Self::TOO_MANY_PREDECESSORS,
            Self::NChildren(_) => BAD_ARGUMENT,
            Self::NoParent { .. } | Self::BeingCancelled(_) => Self::NO_PARENT,
            Self::NothingRuns(_) => Self::NOTHING_RUNS,
            Self::KeyTaken(_) => Self::KEY_TAKEN,
            Self::FlowTemplate(_) | Self::TooManyFlowTemplates(_) => Self::BAD_FLOW_TEMPLATES,
            Self::Instance(_) => Self::BAD_INSTANCE,
            Self::Key { .. } => Self::BAD_KEY,
            Self::Priority(_) | Self::Within(_) => Class::of(Kind::Invalid, "bad_argument"),
            Self::EmptyBudget(_) => Self::EMPTY_BUDGET,
            Self::FilterText(_) => Self::BAD_FILTER,
            Self::Text(error) => error.class(),
            Self::Labels(error) => error.class(),
            Self::Parameters(error) => error.class(),
            Self::ResultSchema(error) => error.class(),
            Self::Attachment(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Budget(error) => error.class(),
            Self::Post(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Returns the next step for a task that ended without an answer.
fn retry_hint(state: State, id: Uuid) -> String {
    match state {
        State::Failed | State::Cancelled => {
            format!(", `dalsegno task retry {id}` runs it again")
        }
        _ => String::new(),
    }
}
