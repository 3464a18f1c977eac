//! Errors of flows, and their classes.

use uuid::Uuid;

use super::{MAX_TASKS, templates::Problems};
use crate::domain::{
    StatementError, agents, campaigns,
    class::{Class, Classify, Kind},
    tasks,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no flow {0}: `dalsegno flow ls` lists them")]
    Unknown(Uuid),
    #[error("there is no flow template `{name}`: {advice}")]
    NoTemplate { name: String, advice: String },
    #[error(
        "flow template `{name}` cannot be started: {problem}; `dalsegno flow check` lists every problem"
    )]
    BrokenTemplate { name: String, problem: String },
    #[error("the flow has no step `{step}`: {advice}")]
    NoStep { step: String, advice: String },
    #[error("the inputs do not match the template: {}", .0.join("; "))]
    Inputs(Vec<String>),
    #[error(
        "the flow would have {0} tasks, at most {MAX_TASKS} are allowed: start several flows with shorter lists"
    )]
    TooMany(usize),
    #[error(
        "flow {0} has ended: `dalsegno flow retry {0} --from STEP` runs it again from one of its steps"
    )]
    Ended(Uuid),
    #[error("flow {0} is paused: `dalsegno flow resume {0}` first")]
    Paused(Uuid),
    #[error("flow {0} is not paused: `dalsegno flow show {0}` shows its state")]
    NotPaused(Uuid),
    #[error(transparent)]
    Problems(#[from] Problems),
    #[error(transparent)]
    Agent(#[from] agents::LookupError),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error("step `{step}`: {error}")]
    Step { step: String, error: tasks::Error },
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_flow");
    pub const NO_TEMPLATE: Class = Class::of(Kind::NotFound, "unknown_template");
    pub const NO_STEP: Class = Class::of(Kind::NotFound, "unknown_step");
    pub const INPUTS: Class = Class::of(Kind::Invalid, "bad_inputs");
    pub const TOO_MANY: Class = Class::of(Kind::Invalid, "too_many_tasks_in_flow");
    pub const ENDED: Class = Class::of(Kind::Conflict, "flow_ended");
    pub const PAUSED: Class = Class::of(Kind::Conflict, "flow_paused");
    pub const NOT_PAUSED: Class = Class::of(Kind::Conflict, "flow_not_paused");
    pub const BAD_TEMPLATES: Class = Class::of(Kind::Conflict, "bad_templates");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::NoTemplate { .. } => Self::NO_TEMPLATE,
            Self::NoStep { .. } => Self::NO_STEP,
            Self::Inputs(_) => Self::INPUTS,
            Self::TooMany(_) => Self::TOO_MANY,
            Self::Ended(_) => Self::ENDED,
            Self::Paused(_) => Self::PAUSED,
            Self::NotPaused(_) => Self::NOT_PAUSED,
            Self::Problems(_) | Self::BrokenTemplate { .. } => Self::BAD_TEMPLATES,
            Self::Agent(error) => error.class(),
            Self::Task(error) | Self::Step { error, .. } => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
