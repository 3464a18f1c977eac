//! The record of a turn's rounds before its last call.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    domain::messages,
    jobs::run_turn::begin::open_turn::CallRecord,
    providers::{SentRequest, Usage},
};

#[derive(Default)]
pub struct Rounds {
    /// The model's messages and the results of its calls, as they will be stored.
    pub said: Vec<messages::New>,
    /// Calls of the model that asked for tools, and those that the provider has refused as too long.
    pub calls: Vec<ModelCall>,
    pub tools: Vec<ToolUse>,
    /// Flags for people.
    pub flags: Vec<String>,
}

/// A call of the model that was answered with calls of tools, or was refused as too long and repeated with less.
pub struct ModelCall {
    pub context: CallRecord,
    /// True if the provider has refused it.
    pub is_refused: bool,
    /// The request; `None` if none was sent.
    pub sent: Option<Box<SentRequest>>,
    pub estimated_tokens: u64,
    pub usage: Usage,
    pub provider_message_id: Option<String>,
    /// Our id of the call, if it was sent as a batch.
    pub batch_call: Option<String>,
    pub first_byte: Option<Duration>,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
}

/// A call of a tool.
pub struct ToolUse {
    /// The name as the model wrote it, cut if it is long.
    pub name: String,
    /// False for a name that the model has made up.
    pub is_offered: bool,
    pub call_id: String,
    pub outcome: Outcome,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The tool returned an error, or is not one of this agent's.
    Failed,
    TimedOut,
    /// The arguments are not an object.
    Unreadable,
    /// Refused, because it was made too often.
    Repeated,
    /// Refused, because its answer had too many calls.
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
