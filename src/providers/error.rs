//! Error of all providers: a message for people, and a class that says what it requires.

use std::{error::Error as StdError, fmt, time::Duration};

use super::{ModelSpend, OutputFiles, Usage};
use crate::transcript::Message;

/// A call that failed.
#[derive(Debug)]
pub struct Error {
    /// Stable name for metrics and APIs: `ollama.busy`.
    pub code: &'static str,
    pub class: Class,
    pub origin: Origin,
    /// Usage of the failed call, if the provider reported it before it failed. It belongs in the ledger all the same.
    pub usage: Option<Box<Usage>>,
    /// Usage by model and with its price, if the provider knows it.
    pub spent: Vec<ModelSpend>,
    /// True if the provider was not called at all: there is nothing for the ledger.
    pub is_unasked: bool,
    /// True if tools were used before it failed: they may have had effects.
    pub has_acted: bool,
    /// Messages of the model and its tools before it failed, if the provider makes several calls of its own.
    pub said: Box<[Message]>,
    /// Files that the agent had written before it failed.
    pub files: Box<OutputFiles>,
    cause: Box<dyn StdError + Send + Sync>,
}

/// Reaction that a failure requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The same call may succeed the next time. Uses up an attempt.
    Retry { after: Option<Duration> },
    /// The call was not made, or could not be taken now. Uses up no attempt. `after` is the minimum pause that the provider asks for. The
    /// caller waits longer each time.
    Snooze { after: Duration, scope: Scope },
    /// The same call would fail every time; the session has to change first.
    Rebuild { reason: Rebuild },
    /// The provider rejects the content of this call, and would every time. The history that it has answered before stays valid.
    Reject,
    /// Only a person can help.
    Fail,
    /// The caller's own token ended the call. The caller knows the reason and the consequences.
    Cancelled,
}

/// Source of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The provider, or the connection to it.
    Provider,
    /// The provider, at the cost limit that it was given.
    CostLimit,
    /// Files of the conversation are gone that were on this host at the check before the call.
    LostFiles,
    /// This host or its database: another provider would fail here too.
    Host,
    /// The budget of the task or of its campaign.
    Budget,
    /// A rate limit of this service.
    RateLimit,
}

impl Origin {
    /// Returns true if the failure says nothing about the provider.
    pub fn is_unrelated_to_provider(self) -> bool {
        matches!(self, Self::Host | Self::Budget | Self::RateLimit)
    }
}

/// Other calls that would fail in the same way right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every call to this host.
    Host,
    /// Every call of this worker to this host. Other workers may reach it.
    Worker,
    /// Every call on this credential.
    Credential,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rebuild {
    /// The prompt does not fit into the window.
    Overflow,
    /// The server silently cut the prompt; the answer was discarded.
    Truncated,
    /// The provider rejects the history.
    Poisoned,
    /// The provider no longer has the session.
    Lost,
}

impl Error {
    pub fn new(
        code: &'static str,
        class: Class,
        cause: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            code,
            class,
            origin: Origin::Provider,
            usage: None,
            spent: Vec::new(),
            is_unasked: false,
            has_acted: false,
            said: Box::default(),
            files: Box::default(),
            cause: cause.into(),
        }
    }

    pub fn of(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage.map(Box::new);
        self
    }

    /// Marks a failure that came before the call.
    pub fn before_call(mut self) -> Self {
        self.is_unasked = true;
        self
    }

    pub fn with_has_acted(mut self, has_acted: bool) -> Self {
        self.has_acted = has_acted;
        self
    }

    pub fn with_said(mut self, said: Vec<Message>) -> Self {
        self.said = said.into_boxed_slice();
        self
    }

    pub fn with_files(mut self, files: OutputFiles) -> Self {
        self.files = Box::new(files);
        self
    }

    /// Returns this error in place of `stopped`, the error of the call that was stopped because of it. Cost and effects are those of
    /// `stopped`.
    pub fn instead_of(self, stopped: Self) -> Self {
        let Self { code, class, origin, cause, .. } = self;
        Self { code, class, origin, cause, has_acted: true, ..stopped }
    }

    /// Returns the cause, if it is of this type.
    pub fn cause_as<T: StdError + 'static>(&self) -> Option<&T> {
        self.cause.downcast_ref()
    }

    pub fn with_spent(mut self, spent: Vec<ModelSpend>) -> Self {
        self.spent = spent;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}
