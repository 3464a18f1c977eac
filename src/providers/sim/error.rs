//! Errors of the simulation, on purpose or because its window is full.

use std::time::Duration;

use super::fault;
use crate::providers::{self, Class, Rebuild, Scope, Usage};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("sim.faults: {0}")]
    Direction(#[from] fault::Error),
    #[error("the call was cancelled")]
    Cancelled,
    #[error("simulated: too many calls are waiting")]
    Busy,
    #[error("simulated: there is no model {model}")]
    ModelMissing { model: String },
    #[error("simulated: the call is refused (status {status})")]
    Refused { status: u16 },
    #[error("simulated: the server failed (status {status})")]
    Failed { status: u16 },
    #[error(
        "the conversation of {prompt_tokens} tokens does not fit into the simulated window of {window_tokens}; \
         compact it, or raise sim.window_tokens"
    )]
    Overflow { prompt_tokens: u32, window_tokens: u32 },
    #[error(
        "simulated: the directive `overflow` refuses the conversation of {prompt_tokens} tokens as too long for the window"
    )]
    DirectedOverflow { prompt_tokens: u32 },
    #[error("simulated: the server silently cut the prompt")]
    Truncated { usage: Usage },
    #[error("simulated: the server was silent for {} s", after.as_secs_f32())]
    Silent { after: Duration },
    #[error("the simulated answer was not complete after {} s", after.as_secs_f32())]
    TooLong { after: Duration },
    #[error("simulated: the answer ended after {n_chars} characters without its last line")]
    Cut { n_chars: usize },
    #[error("simulated: the model returned an empty answer")]
    Empty,
}

impl Error {
    fn code(&self) -> &'static str {
        match self {
            Self::Direction(_) => "sim.direction",
            Self::Cancelled => "sim.cancelled",
            Self::Busy => "sim.busy",
            Self::ModelMissing { .. } => "sim.model_missing",
            Self::Refused { .. } => "sim.refused",
            Self::Failed { .. } => "sim.failed",
            Self::Overflow { .. } | Self::DirectedOverflow { .. } => "sim.overflow",
            Self::Truncated { .. } => "sim.truncated",
            Self::Silent { .. } => "sim.silent",
            Self::TooLong { .. } => "sim.too_long",
            Self::Cut { .. } => "sim.ended_early",
            Self::Empty => "sim.empty",
        }
    }

    /// Returns the class that the same fault of a real server has.
    fn class(&self) -> Class {
        match self {
            Self::Cancelled => Class::Cancelled,
            Self::Busy => Class::Snooze { after: Duration::ZERO, scope: Scope::Host },
            Self::Refused { status: 401 | 403 } => Class::Fail,
            Self::Refused { .. } => Class::Reject,
            Self::Overflow { .. } | Self::DirectedOverflow { .. } => {
                Class::Rebuild { reason: Rebuild::Overflow }
            }
            Self::Truncated { .. } => Class::Rebuild { reason: Rebuild::Truncated },
            Self::Direction(_) | Self::ModelMissing { .. } => Class::Fail,
            Self::Failed { .. }
            | Self::Silent { .. }
            | Self::TooLong { .. }
            | Self::Cut { .. }
            | Self::Empty => Class::Retry { after: None },
        }
    }
}

impl From<Error> for providers::Error {
    fn from(error: Error) -> Self {
        let usage = match &error {
            Error::Truncated { usage } => Some(*usage),
            _ => None,
        };
        Self::new(error.code(), error.class(), error).with_usage(usage)
    }
}
