//! Errors of Ollama, and their classes.

use std::time::Duration;

pub use crate::providers::http::Activity;
use crate::providers::{self, Class, Rebuild, Scope, Usage, line_splitter::TooMuch};

/// Error of a call. Messages name the host or the model and the remedy; they never contain any of the conversation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up the HTTP client for ollama.base_url: {0}")]
    SetUp(String),
    #[error("the call was cancelled")]
    Cancelled,
    #[error(
        "{host} did not answer the last calls; check that Ollama runs there and that ollama.base_url is correct; the worker calls it again by itself after a pause"
    )]
    BreakerOpen { host: String, after: Duration },
    #[error(
        "cannot connect to {host}; check that Ollama runs there and that ollama.base_url is correct"
    )]
    Connect {
        host: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the connection to {host} broke while {doing}")]
    Broken {
        host: String,
        doing: Activity,
        #[source]
        source: reqwest::Error,
    },
    #[error("{host} was silent for {} s while {doing}; raise ollama.{key} if it needs longer", after.as_secs_f32())]
    Silent { host: String, doing: Activity, after: Duration, key: &'static str },
    #[error("the answer was not complete after {} s; raise ollama.total_timeout_secs if it needs longer", after.as_secs_f32())]
    TooLong { after: Duration },
    #[error("the embedding of a query took longer than {} ms; raise memory.embeddings_timeout_ms, or keep the model loaded", after.as_millis())]
    NoMeaning { after: Duration },
    /// `after` is the pause that the server asks for; zero if it does not say.
    #[error("{host} has too many calls waiting: {message}")]
    Busy { host: String, after: Duration, message: String },
    #[error("{host} does not have the model {model}; run `ollama pull {model}` there")]
    ModelMissing { host: String, model: String },
    #[error(
        "the request cannot be built, because {host} has not described the model {model}; check that Ollama runs there and has the model"
    )]
    NoFacts { host: String, model: String },
    #[error(
        "the model {model} cannot call tools, but the agent's file grants some: use a model with `tools` among its capabilities (`ollama show`), or remove them from `tools`"
    )]
    NoTools { model: String },
    #[error(
        "{host} answered with status {status}, but is not an Ollama server; correct ollama.base_url"
    )]
    NotOllama { host: String, status: u16 },
    #[error(
        "{host} requires authentication (status {status}), which calls to Ollama do not support; allow this service without it"
    )]
    AuthenticationRequired { host: String, status: u16 },
    #[error(
        "{host} redirects calls (status {status}), which is not followed; set ollama.base_url to the final address"
    )]
    Redirected { host: String, status: u16 },
    #[error(
        "the conversation does not fit into the window of {num_ctx} tokens; compact it, or raise ollama.num_ctx: {message}"
    )]
    Overflow { num_ctx: u32, message: String },
    #[error(
        "the server silently cut the prompt to its window: it read {counted} of about {estimated} tokens; compact the conversation, or give the model a larger window"
    )]
    Truncated { counted: u64, estimated: u32, usage: Usage },
    #[error("the server refuses the call (status {status}): {message}")]
    Refused { status: u16, message: String },
    #[error("the server failed (status {status}): {message}")]
    Failed { status: u16, message: String },
    #[error("the server broke the answer off: {message}")]
    FailedInStream { message: String },
    #[error(
        "the answer ended after {n_chars} characters without its last line; the model or its server was stopped"
    )]
    EndedEarly { n_chars: usize },
    #[error("a line of the answer does not have Ollama's format; check ollama.base_url")]
    Malformed(#[source] serde_json::Error),
    #[error("the server sent {0}, which is too much for an answer")]
    TooMuch(#[from] TooMuch),
    #[error(
        "the model used {reserve_tokens} tokens without an answer; raise the agent's reserve for the answer, or turn off its thinking"
    )]
    NoRoom { reserve_tokens: u32, usage: Usage },
    #[error("the model returned an empty answer")]
    Empty { usage: Usage },
    #[error("cannot call the model: no message has text")]
    NothingToSend,
    #[error("cannot write the call as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::SetUp(_) => "ollama.set_up",
            Self::Cancelled => "ollama.cancelled",
            Self::BreakerOpen { .. } => "ollama.breaker_open",
            Self::Connect { .. } => "ollama.connect",
            Self::Broken { .. } => "ollama.broken",
            Self::Silent { .. } => "ollama.silent",
            Self::TooLong { .. } => "ollama.too_long",
            Self::NoMeaning { .. } => "ollama.no_meaning",
            Self::Busy { .. } => "ollama.busy",
            Self::ModelMissing { .. } => "ollama.model_missing",
            Self::NoFacts { .. } => "ollama.no_facts",
            Self::NoTools { .. } => "ollama.no_tools",
            Self::NotOllama { .. } => "ollama.not_ollama",
            Self::AuthenticationRequired { .. } => "ollama.authentication_required",
            Self::Redirected { .. } => "ollama.redirected",
            Self::Overflow { .. } => "ollama.overflow",
            Self::Truncated { .. } => "ollama.truncated",
            Self::Refused { .. } => "ollama.refused",
            Self::Failed { .. } => "ollama.failed",
            Self::FailedInStream { .. } => "ollama.failed_in_stream",
            Self::EndedEarly { .. } => "ollama.ended_early",
            Self::Malformed(_) => "ollama.malformed",
            Self::TooMuch(_) => "ollama.too_much",
            Self::NoRoom { .. } => "ollama.no_room",
            Self::Empty { .. } => "ollama.empty",
            Self::NothingToSend => "ollama.nothing_to_send",
            Self::Unwritable(_) => "ollama.unwritable",
        }
    }

    pub fn class(&self) -> Class {
        match self {
            Self::Cancelled => Class::Cancelled,
            Self::Busy { after, .. } => Class::Snooze { after: *after, scope: Scope::Host },
            // Nothing was sent: the server may be away for long, and comes back. Or only this worker does not reach it.
            Self::BreakerOpen { after, .. } => {
                Class::Snooze { after: *after, scope: Scope::Worker }
            }
            Self::Connect { .. } => Class::Snooze { after: Duration::ZERO, scope: Scope::Worker },
            Self::Overflow { .. } => Class::Rebuild { reason: Rebuild::Overflow },
            Self::Truncated { .. } => Class::Rebuild { reason: Rebuild::Truncated },
            Self::Refused { .. } => Class::Reject,
            // The same prompt and the same reserve end in the same place.
            Self::NoRoom { .. }
            | Self::SetUp(_)
            | Self::ModelMissing { .. }
            | Self::NoTools { .. }
            | Self::NotOllama { .. }
            | Self::AuthenticationRequired { .. }
            | Self::Redirected { .. }
            | Self::NothingToSend
            | Self::Unwritable(_) => Class::Fail,
            Self::Broken { .. }
            | Self::Silent { .. }
            | Self::TooLong { .. }
            | Self::NoMeaning { .. }
            | Self::Failed { .. }
            | Self::FailedInStream { .. }
            | Self::EndedEarly { .. }
            | Self::Malformed(_)
            | Self::TooMuch(_)
            | Self::NoFacts { .. }
            | Self::Empty { .. } => Class::Retry { after: None },
        }
    }

    /// Returns true if the host is out of reach, and did not just refuse this call.
    pub(super) fn is_of_transport(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::Broken { .. }
                | Self::Silent { .. }
                | Self::NoMeaning { .. }
        )
    }

    /// Returns true if the error can occur without an answer from the host, so that it says nothing about the host.
    pub(super) fn is_silent_about_host(&self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::TooLong { .. }
                | Self::Overflow { .. }
                | Self::NothingToSend
                | Self::NoTools { .. }
                | Self::NoFacts { .. }
                | Self::Unwritable(_)
                | Self::SetUp(_)
        )
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Self::Truncated { usage, .. } | Self::NoRoom { usage, .. } | Self::Empty { usage } => {
                Some(*usage)
            }
            _ => None,
        }
    }
}

impl From<Error> for providers::Error {
    fn from(error: Error) -> Self {
        let (code, class, usage) = (error.code(), error.class(), error.usage());
        let is_before_call = matches!(error, Error::BreakerOpen { .. } | Error::Connect { .. });
        let error = Self::new(code, class, error).with_usage(usage);
        if is_before_call { error.before_call() } else { error }
    }
}
