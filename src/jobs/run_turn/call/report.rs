//! The result of the calls of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    domain::turns::HistoryCheck,
    jobs::run_turn::call::rounds::record::Rounds,
    providers::{self, Outcome, SentRequest, Usage},
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
            rounds: Rounds::default(),
        }
    }

    /// Adds up the tokens of all calls, as far as the provider has counted.
    pub fn usage(&self) -> Usage {
        let last = self.result.as_ref().map(|outcome| outcome.usage).unwrap_or_default();
        let before = self.rounds.calls.iter().map(|call| call.usage);
        before.fold(last, |sum, usage| {
            let add =
                |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
            Usage {
                input: add(sum.input, usage.input),
                output: add(sum.output, usage.output),
                cache_read: add(sum.cache_read, usage.cache_read),
                cache_creation: add(sum.cache_creation, usage.cache_creation),
            }
        })
    }
}
