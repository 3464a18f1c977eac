//! What came before the last call of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{context::Manifest, domain::messages, providers::Usage};

#[derive(Default)]
pub struct Rounds {
    /// The model's messages and the results of its calls, as they will be stored.
    pub said: Vec<messages::New>,
    /// The calls of the model that asked for tools.
    pub calls: Vec<ModelCall>,
    pub tools: Vec<ToolUse>,
    /// What a person should know.
    pub flags: Vec<String>,
}

/// A call of the model whose answer were calls of tools.
pub struct ModelCall {
    /// Of what it was sent.
    pub manifest: Manifest,
    pub estimated_tokens: u64,
    pub usage: Usage,
    pub provider_message_id: Option<String>,
    pub first_byte: Option<Duration>,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
}

/// A call of a tool.
pub struct ToolUse {
    /// As the model has written it, or the beginning of that.
    pub name: String,
    /// Else the model has made it up.
    pub is_offered: bool,
    pub call_id: String,
    pub outcome: Outcome,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Unreadable => "unreadable",
            Self::Repeated => "repeated",
            Self::TooMany => "too_many",
        }
    }

    pub fn is_error(self) -> bool {
        self != Self::Done
    }
}
