//! Errors of reruns, and their classes.

use uuid::Uuid;

use super::{MAX_OF_TURN, MAX_TIMES};
use crate::{
    domain::{
        StatementError,
        agents::Problems,
        campaigns,
        class::{Class, Classify, Kind},
        contexts, labels, sessions, text, turns,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "turn {turn} of session {session_id} cannot be sent again as it was: {reason}; `dalsegno context verify {session_id}` lists the turns that can"
    )]
    NotExact { session_id: Uuid, turn: i32, reason: String },
    #[error(
        "the temperature of {provider} cannot be set: {reason}; leave out --temperature, or name another provider in a file for --agent"
    )]
    NoTemperature { provider: String, reason: &'static str },
    #[error("the temperature {0} is not between 0 and 2")]
    Temperature(f32),
    #[error(
        "cannot rerun a turn {0} times: 1 to {MAX_TIMES} at once are possible; repeat the command for more"
    )]
    Times(i32),
    #[error(
        "turn {turn} of session {session_id} has {n} reruns, and {times} more exceed the limit of {MAX_OF_TURN} for each turn: fork the session, and rerun the turn of a new task"
    )]
    TooMany { session_id: Uuid, turn: i32, n: i64, times: i32 },
    #[error(
        "the agent file is refused, line {}: {}{}; write: {}",
        .0.0.first().and_then(|problem| problem.line).unwrap_or(1),
        .0.0.first().and_then(|problem| problem.key.as_ref()).map(|key| format!("{key}: ")).unwrap_or_default(),
        .0.0.first().map_or("", |problem| problem.message.as_str()),
        .0.0.first().map_or("", |problem| problem.fix.as_str())
    )]
    AgentFile(Problems),
    #[error(
        "no model of {provider} is named: add --model, or the key `model` to the file for --agent"
    )]
    NoModel { provider: String },
    #[error(
        "this version does not support the provider {0}: name another one in a file for --agent"
    )]
    UnknownProvider(String),
    #[error(
        "a call of {model} on {provider} costs money, and campaign {campaign_id} has no budget for reruns: `dalsegno campaign budget {campaign_id} --experiments 1` sets one"
    )]
    NoBudget { campaign_id: Uuid, provider: String, model: String },
    #[error("the service cannot be set up for a rerun: {0}")]
    NotSetUp(String),
    #[error("cannot enqueue a rerun of turn {turn} of session {session_id}")]
    Enqueue { session_id: Uuid, turn: i32, source: queue::Error },
    #[error(transparent)]
    Labels(#[from] labels::Error),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Context(#[from] contexts::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Turn(#[from] turns::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const NOT_EXACT: Class = Class::of(Kind::Conflict, "context_not_exact");
    pub const OPTION_MISSING: Class = Class::of(Kind::Invalid, "option_not_supported");
    pub const BAD_OPTION: Class = Class::of(Kind::Invalid, "bad_option");
    pub const TOO_MANY: Class = Class::of(Kind::Conflict, "too_many_reruns");
    pub const BAD_AGENT_FILE: Class = Class::of(Kind::Invalid, "bad_agent_file");
    pub const NO_BUDGET: Class = Class::of(Kind::Conflict, "no_experiment_budget");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NotExact { .. } => Self::NOT_EXACT,
            Self::NoTemperature { .. } => Self::OPTION_MISSING,
            Self::Temperature(_)
            | Self::Times(_)
            | Self::NoModel { .. }
            | Self::UnknownProvider(_) => Self::BAD_OPTION,
            Self::TooMany { .. } => Self::TOO_MANY,
            Self::AgentFile(_) => Self::BAD_AGENT_FILE,
            Self::NoBudget { .. } => Self::NO_BUDGET,
            Self::NotSetUp(_) => Class::of(Kind::Internal, "internal"),
            Self::Enqueue { source, .. } | Self::Queue(source) => source.class(),
            Self::Labels(error) => error.class(),
            Self::Text(error) => error.class(),
            Self::Context(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Turn(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
