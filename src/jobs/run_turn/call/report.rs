//! The result of the calls of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    jobs::run_turn::call::rounds::record::Rounds,
    providers::{self, Outcome, Usage},
};

/// The result of a call.
pub struct CallReport {
    pub result: Result<Outcome, providers::Error>,
    /// The part of the answer that had arrived.
    pub arrived: String,
    pub called_at: DateTime<Utc>,
    pub took: Duration,
    /// The model did not see its history, as far as its counts show.
    pub is_doubted: bool,
    /// Stopped between two rounds: the task was asked to stop.
    pub is_stopped: bool,
    /// The rounds before it in the turn.
    pub rounds: Rounds,
}

impl CallReport {
    /// Something was in the way before the provider was asked.
    pub fn not_made(error: providers::Error, at: DateTime<Utc>) -> Self {
        Self {
            result: Err(error.not_made()),
            arrived: String::new(),
            called_at: at,
            took: Duration::ZERO,
            is_doubted: false,
            is_stopped: false,
            rounds: Rounds::default(),
        }
    }

    /// The tokens of the answer and of all that came before it, where the provider has counted.
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
