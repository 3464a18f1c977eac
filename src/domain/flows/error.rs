//! Errors of flows, and their classes.

use uuid::Uuid;

use super::{MAX_TASKS, shelf::Problems};
use crate::domain::{
    Failed, agents, campaigns,
    class::{Class, Classify, Kind},
    tasks,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no flow {0}: `dalsegno flow ls` lists them")]
    Unknown(Uuid),
    #[error("there is no template `{name}`: {advice}")]
    NoTemplate { name: String, advice: String },
    #[error(
        "template `{name}` cannot be started: {problem}; `dalsegno flow templates` lists every problem"
    )]
    BrokenTemplate { name: String, problem: String },
    #[error("the flow has no step `{step}`: {advice}")]
    NoStep { step: String, advice: String },
    #[error("the inputs do not fit the template: {}", .0.join("; "))]
    Inputs(Vec<String>),
    #[error(
        "the flow would have {0} tasks, and {MAX_TASKS} is the most: start several with shorter lists"
    )]
    TooMany(usize),
    #[error(
        "flow {0} has ended: `dalsegno flow retry {0} --from STEP` goes on from one of its steps"
    )]
    Ended(Uuid),
    #[error("flow {0} is paused: `dalsegno flow resume {0}` first")]
    Paused(Uuid),
    #[error("flow {0} is not paused")]
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
    Database(#[from] Failed),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_flow"),
            Self::NoTemplate { .. } => Class::of(Kind::NotFound, "unknown_template"),
            Self::NoStep { .. } => Class::of(Kind::NotFound, "unknown_step"),
            Self::Inputs(_) => Class::of(Kind::Invalid, "bad_inputs"),
            Self::TooMany(_) => Class::of(Kind::Invalid, "too_many_tasks_in_flow"),
            Self::Ended(_) => Class::of(Kind::Conflict, "flow_ended"),
            Self::Paused(_) => Class::of(Kind::Conflict, "flow_paused"),
            Self::NotPaused(_) => Class::of(Kind::Conflict, "flow_not_paused"),
            Self::Problems(_) | Self::BrokenTemplate { .. } => {
                Class::of(Kind::Conflict, "bad_templates")
            }
            Self::Agent(error) => error.class(),
            Self::Task(error) | Self::Step { error, .. } => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
