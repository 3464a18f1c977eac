//! One error type for all providers: what happened, in words for a person, and what it calls for.

use std::{error::Error as StdError, fmt, time::Duration};

use super::{Spent, Usage};
use crate::transcript::Message;

/// A call that gave no outcome.
#[derive(Debug)]
pub struct Error {
    /// Stable name for metrics and APIs: `ollama.busy`.
    pub code: &'static str,
    pub class: Class,
    pub origin: Origin,
    /// What the failed call cost, where the provider said so before it failed. Belongs in the ledger all the same.
    pub usage: Option<Box<Usage>>,
    /// The same by model and with its price, where the provider knows it.
    pub spent: Vec<Spent>,
    /// The provider was not asked at all: there is nothing for the ledger.
    pub is_unasked: bool,
    /// Tools were used before it failed: what they did may have had effects.
    pub has_acted: bool,
    /// What the model and its tools had said before it failed, where the provider makes several calls of its own.
    pub said: Vec<Message>,
    cause: Box<dyn StdError + Send + Sync>,
}

/// What a failure calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The same call may work the next time. Uses up an attempt.
    Retry { after: Option<Duration> },
    /// The call was not made, or could not be taken now. Uses up no attempt. `after` is what the provider asks for at least;
    /// the caller waits longer each time.
    Snooze { after: Duration, scope: Scope },
    /// The same call would fail every time; the session has to change first.
    Rebuild { reason: Rebuild },
    /// The provider rejects what this call says, and would every time. Everything that it has answered before is taken as it is.
    Reject,
    /// Only a person can help.
    Fail,
    /// The caller's own token ended the call; the caller knows why, and what follows from it.
    Cancelled,
}

/// Where a failure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The provider, or the way there.
    Provider,
    /// The provider, at the limit of cost that it was given.
    CostLimit,
    /// Files of the conversation that were on this host when they were looked at are gone.
    LostFiles,
    /// This host or its database: another provider would fail here too.
    Host,
    /// The budget of the task or of its campaign.
    Budget,
}

impl Origin {
    /// It says nothing about the provider.
    pub fn is_our_own(self) -> bool {
        matches!(self, Self::Host | Self::Budget)
    }
}

/// Who else would run into the same thing right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every call to this host.
    Host,
    /// Every call on this login.
    Credential,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rebuild {
    /// The prompt does not fit into the window.
    Overflow,
    /// The server cut the prompt without saying so; the answer was given up.
    Truncated,
    /// The provider says that the history is to blame.
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
            said: Vec::new(),
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

    /// What went wrong came before the call.
    pub fn not_made(mut self) -> Self {
        self.is_unasked = true;
        self
    }

    pub fn having_acted(mut self, has_acted: bool) -> Self {
        self.has_acted = has_acted;
        self
    }

    pub fn with_said(mut self, said: Vec<Message>) -> Self {
        self.said = said;
        self
    }

    /// This is why the call was stopped, and `stopped` what it says of that: what it has cost and done is of this one.
    pub fn instead_of(self, stopped: Self) -> Self {
        let Self { code, class, origin, cause, .. } = self;
        Self { code, class, origin, cause, has_acted: true, ..stopped }
    }

    pub fn with_spent(mut self, spent: Vec<Spent>) -> Self {
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
