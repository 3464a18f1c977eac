//! What came before the last call of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{context::Manifest, domain::messages, providers::Usage};

#[derive(Default)]
pub(in crate::jobs::run_turn) struct Rounds {
    /// The model's messages and the results of its calls, as they will be stored.
    pub(in crate::jobs::run_turn) said: Vec<messages::New>,
    /// The calls of the model that asked for tools.
    pub(in crate::jobs::run_turn) calls: Vec<Asked>,
    pub(in crate::jobs::run_turn) tools: Vec<Used>,
    /// What a person should know.
    pub(in crate::jobs::run_turn) flags: Vec<String>,
}

/// A call of the model whose answer were calls of tools.
pub(in crate::jobs::run_turn) struct Asked {
    /// Of what it was sent.
    pub(in crate::jobs::run_turn) manifest: Manifest,
    pub(in crate::jobs::run_turn) estimated_tokens: u64,
    pub(in crate::jobs::run_turn) usage: Usage,
    pub(in crate::jobs::run_turn) provider_message_id: Option<String>,
    pub(in crate::jobs::run_turn) first_byte: Option<Duration>,
    pub(in crate::jobs::run_turn) called_at: DateTime<Utc>,
    pub(in crate::jobs::run_turn) took: Duration,
}

/// A call of a tool.
pub(in crate::jobs::run_turn) struct Used {
    /// As the model has written it, or the beginning of that.
    pub(in crate::jobs::run_turn) name: String,
    /// Else the model has made it up.
    pub(in crate::jobs::run_turn) is_offered: bool,
    pub(in crate::jobs::run_turn) call_id: String,
    pub(in crate::jobs::run_turn) outcome: Outcome,
    pub(in crate::jobs::run_turn) called_at: DateTime<Utc>,
    pub(in crate::jobs::run_turn) took: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jobs::run_turn) enum Outcome {
    Done,
    /// The tool said that it could not, or is none of this agent's.
    Failed,
    TimedOut,
    /// The arguments are no object.
    Unreadable,
    /// It had been made too often, and was not made again.
    Repeated,
    /// Its answer had called too many before.
    TooMany,
}

impl Outcome {
    pub(in crate::jobs::run_turn) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Unreadable => "unreadable",
            Self::Repeated => "repeated",
            Self::TooMany => "too_many",
        }
    }

    pub(in crate::jobs::run_turn) fn is_error(self) -> bool {
        self != Self::Done
    }
}
