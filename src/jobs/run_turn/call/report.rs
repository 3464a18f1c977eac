//! The result of the calls of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    domain::turns::HistoryCheck,
    jobs::run_turn::call::rounds::record::Rounds,
    providers::{self, Outcome, SentRequest, ToldLimits, Usage},
};

/// The result of a call.
pub struct CallReport {
    pub result: Result<Outcome, providers::Error>,
    /// Part of the answer that had arrived.
    pub arrived: String,
    /// The request; `None` if none was sent.
    pub sent: Option<Box<SentRequest>>,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
    /// The proof that the model saw the history.
    pub history_check: HistoryCheck,
    /// True if the turn was stopped between two rounds, because the task's cancellation was requested.
    pub is_stopped: bool,
    /// Our id of the call, if it was sent as a batch.
    pub batch_call: Option<String>,
    /// Limits that the provider has told with its answer.
    pub told_limits: Option<ToldLimits>,
    /// Rounds of the turn before this call.
    pub rounds: Rounds,
}

impl CallReport {
    /// Builds the report of a call that failed before the provider was called.
    pub fn before_call(error: providers::Error, at: DateTime<Utc>) -> Self {
        Self {
            result: Err(error.before_call()),
            arrived: String::new(),
            sent: None,
            called_at: at,
            took: Duration::ZERO,
            history_check: HistoryCheck::NotProvable,
            is_stopped: false,
            batch_call: None,
            told_limits: None,
            rounds: Rounds::default(),
        }
    }

    /// Counts the calls of the model that were made.
    pub fn n_calls(&self) -> u64 {
        let last = match &self.result {
            // The provider may have made several calls itself.
            Ok(outcome) => outcome.conversation.as_ref().map_or(1, |it| it.calls.len().max(1)),
            Err(error) => usize::from(!error.is_unasked),
        };
        u64::try_from(self.rounds.calls.len() + last).unwrap_or(u64::MAX)
    }

    /// Adds up the tokens of all calls, as far as the provider has counted.
    pub fn usage(&self) -> Usage {
        let last = match &self.result {
            Ok(outcome) => outcome.usage,
            Err(error) => error.usage.as_deref().copied().unwrap_or_default(),
        };
        let before = self.rounds.calls.iter().map(|call| call.usage);
        before.fold(last, Usage::plus)
    }
}
