//! Errors of endpoints, and their classes.

use std::{fmt, io, path::PathBuf, time::Duration};

use crate::providers::{
    self, Class, Rebuild, Scope, ToldLimits, Usage, http::Activity, line_splitter::TooMuch,
};

/// Error of a call. Messages name the endpoint or the model and the remedy; they never contain any of the conversation or of the key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up the HTTP client for {server}: {reason}; correct {}", server.key("base_url"))]
    SetUp { server: Server, reason: String },
    #[error("the variable {variable} with the key of {server} is not set; set it for the service, or correct {}", server.key("credential_variable"))]
    NoVariable { server: Server, variable: String },
    #[error("cannot read the key of {server} from {}; make the file readable for the service only", file.display())]
    NoFile {
        server: Server,
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the key of {server} is empty or has characters that no header may have; write the key alone into its variable or file"
    )]
    UnusableKey { server: Server },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{server} did not answer the last calls; check that it runs and that {} is correct; the worker calls it again by itself after a pause", server.key("base_url"))]
    BreakerOpen { server: Server, after: Duration },
    #[error("cannot connect to {server}; check that it runs and that {} is correct", server.key("base_url"))]
    Connect {
        server: Server,
        #[source]
        source: reqwest::Error,
    },
    #[error("the certificate of {server} is not accepted; renew it, or correct {}", server.key("base_url"))]
    Certificate {
        server: Server,
        #[source]
        source: reqwest::Error,
    },
    #[error("the connection to {server} broke while {doing}")]
    Broken {
        server: Server,
        doing: Activity,
        #[source]
        source: reqwest::Error,
    },
    #[error("{server} was silent for {} s while {doing}; raise {} if it needs longer", after.as_secs_f32(), server.key(doing.timeout_key()))]
    Silent { server: Server, doing: Activity, after: Duration },
    #[error("the answer of {server} was not complete after {} s; raise {} if it needs longer", after.as_secs_f32(), server.key("total_timeout_secs"))]
    TooLong { server: Server, after: Duration },
    /// `after` is the pause that the server asks for; zero if it does not say.
    #[error("{server} takes no calls now: {message}{}", told.describe())]
    Busy { server: Server, after: Duration, message: String, told: Box<ToldLimits> },
    #[error("{server} refuses the key (status {status}): {message}; correct the key in {} or credential_file", server.key("credential_variable"))]
    KeyRefused { server: Server, status: u16, message: String },
    #[error(
        "the account of {server} has no credit left: {message}; add credit, or use another key"
    )]
    NoCredit { server: Server, message: String },
    #[error(
        "{server} does not have the model {model}: {message}; correct `model` in the agent's file"
    )]
    ModelMissing { server: Server, model: String, message: String },
    #[error(
        "{server} offers no tools with the model {model}, but the agent's file grants some: {message}; use another model or enable tools in the server, or remove `tools`"
    )]
    NoTools { server: Server, model: String, message: String },
    #[error("{server} answered with status {status}, but not as the API; correct {}", server.key("base_url"))]
    NotTheApi { server: Server, status: u16 },
    #[error("{server} redirects calls (status {status}), which is not followed; set {} to the final address", server.key("base_url"))]
    Redirected { server: Server, status: u16 },
    #[error("the conversation does not fit into the window of {window_tokens} tokens; compact it, or set the window of the model in {}: {message}", server.key("models"))]
    Overflow { server: Server, window_tokens: u32, message: String },
    #[error(
        "the server silently cut the prompt to its window: it read {counted} of about {estimated} tokens; compact the conversation, or load the model with a larger window"
    )]
    Truncated { counted: u64, estimated: u32, usage: Usage },
    #[error("{server} refuses the call (status {status}): {message}")]
    Refused { server: Server, status: u16, message: String },
    #[error(
        "{server} refuses the stored thinking of the conversation: {message}; a new session continues it without tool calls and thinking"
    )]
    HistoryRefused { server: Server, message: String },
    #[error("{server} filtered the answer; change the prompt, or the filter of the server")]
    Filtered { server: Server, usage: Usage },
    #[error("{server} failed (status {status}): {message}")]
    Failed { server: Server, status: u16, message: String },
    #[error("{server} broke the answer off: {message}")]
    FailedInStream { server: Server, message: String },
    #[error(
        "the answer of {server} ended after {n_chars} characters without an end; the model or its server was stopped"
    )]
    EndedEarly { server: Server, n_chars: usize },
    #[error("an answer of {server} does not have the format of the API; check {}", server.key("base_url"))]
    Malformed {
        server: Server,
        #[source]
        source: serde_json::Error,
    },
    #[error("{server} sent {source}, which is too much for an answer")]
    TooMuch { server: Server, source: TooMuch },
    #[error(
        "the model used {reserve_tokens} tokens without a whole answer; raise the agent's reserve_tokens, or turn off its thinking"
    )]
    NoRoom { reserve_tokens: u32, usage: Usage },
    #[error("the model returned an empty answer")]
    Empty { usage: Usage },
    #[error("cannot call the model: no message has text")]
    NothingToSend,
    #[error("cannot write the call as JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// An endpoint and its address, as errors name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name of the endpoint.
    pub name: String,
    /// Host and port.
    pub host: String,
}

impl Server {
    /// Returns the full name of a setting of the endpoint.
    fn key(&self, key: &str) -> String {
        format!("providers.{}.{key}", self.name)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.is_empty() {
            true => write!(f, "endpoint {}", self.name),
            false => write!(f, "endpoint {} ({})", self.name, self.host),
        }
    }
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::SetUp { .. } => "endpoint.set_up",
            Self::NoVariable { .. } => "endpoint.no_variable",
            Self::NoFile { .. } => "endpoint.no_file",
            Self::UnusableKey { .. } => "endpoint.unusable_key",
            Self::Cancelled => "endpoint.cancelled",
            Self::BreakerOpen { .. } => "endpoint.breaker_open",
            Self::Connect { .. } => "endpoint.connect",
            Self::Certificate { .. } => "endpoint.certificate",
            Self::Broken { .. } => "endpoint.broken",
            Self::Silent { .. } => "endpoint.silent",
            Self::TooLong { .. } => "endpoint.too_long",
            Self::Busy { .. } => "endpoint.busy",
            Self::KeyRefused { .. } => "endpoint.key_refused",
            Self::NoCredit { .. } => "endpoint.no_credit",
            Self::ModelMissing { .. } => "endpoint.model_missing",
            Self::NoTools { .. } => "endpoint.no_tools",
            Self::NotTheApi { .. } => "endpoint.not_the_api",
            Self::Redirected { .. } => "endpoint.redirected",
            Self::Overflow { .. } => "endpoint.overflow",
            Self::Truncated { .. } => "endpoint.truncated",
            Self::Refused { .. } => "endpoint.refused",
            Self::HistoryRefused { .. } => "endpoint.history_refused",
            Self::Filtered { .. } => "endpoint.filtered",
            Self::Failed { .. } => "endpoint.failed",
            Self::FailedInStream { .. } => "endpoint.failed_in_stream",
            Self::EndedEarly { .. } => "endpoint.ended_early",
            Self::Malformed { .. } => "endpoint.malformed",
            Self::TooMuch { .. } => "endpoint.too_much",
            Self::NoRoom { .. } => "endpoint.no_room",
            Self::Empty { .. } => "endpoint.empty",
            Self::NothingToSend => "endpoint.nothing_to_send",
            Self::Unwritable(_) => "endpoint.unwritable",
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
            Self::HistoryRefused { .. } => Class::Rebuild { reason: Rebuild::Poisoned },
            Self::Refused { .. } | Self::Filtered { .. } => Class::Reject,
            // The same prompt and the same reserve end in the same place.
            Self::NoRoom { .. }
            | Self::SetUp { .. }
            | Self::NoVariable { .. }
            | Self::NoFile { .. }
            | Self::UnusableKey { .. }
            | Self::Certificate { .. }
            | Self::KeyRefused { .. }
            | Self::NoCredit { .. }
            | Self::ModelMissing { .. }
            | Self::NoTools { .. }
            | Self::NotTheApi { .. }
            | Self::Redirected { .. }
            | Self::NothingToSend
            | Self::Unwritable(_) => Class::Fail,
            Self::Broken { .. }
            | Self::Silent { .. }
            | Self::TooLong { .. }
            | Self::Failed { .. }
            | Self::FailedInStream { .. }
            | Self::EndedEarly { .. }
            | Self::Malformed { .. }
            | Self::TooMuch { .. }
            | Self::Empty { .. } => Class::Retry { after: None },
        }
    }

    /// Returns true if the host is out of reach, and did not just refuse this call.
    pub(in crate::providers) fn is_of_transport(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::Certificate { .. }
                | Self::Broken { .. }
                | Self::Silent { .. }
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
                | Self::Unwritable(_)
                | Self::SetUp { .. }
        )
    }

    /// Converts the error of a call for which the server has `counted` these tokens.
    pub(in crate::providers) fn into_error_of_call(self, counted: Usage) -> providers::Error {
        let error = providers::Error::from(self);
        match error.usage.is_none() && counted != Usage::default() {
            true => error.with_usage(Some(counted)),
            false => error,
        }
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Self::Truncated { usage, .. }
            | Self::NoRoom { usage, .. }
            | Self::Filtered { usage, .. }
            | Self::Empty { usage } => Some(*usage),
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
