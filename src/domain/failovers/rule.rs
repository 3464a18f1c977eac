//! The rule of failovers: the provider of the next turn, and the effect of a failure or an answer.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// Failures in a conversation, and its last move between the providers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailoverState {
    /// Failures in a row, of the provider that is used now.
    pub failures: i32,
    /// Time when the fallback took over, or when a trial of the first provider last failed.
    pub since: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderSide {
    First,
    Fallback,
}

#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Failures in a row after which the other provider is used.
    pub after: i32,
    /// Time before the first provider is tried again.
    pub rest: TimeDelta,
}

/// The effect of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The new standing. `None`: it is deleted.
    pub standing: Option<FailoverState>,
    /// The provider of the next turn, if that is another one, or if a trial of the first one failed.
    pub moved_to: Option<ProviderSide>,
}

impl Rules {
    /// Returns the provider of the next turn.
    pub fn side(&self, standing: Option<FailoverState>, now: DateTime<Utc>) -> ProviderSide {
        match standing.and_then(|standing| standing.since) {
            Some(since) if now < since + self.rest => ProviderSide::Fallback,
            _ => ProviderSide::First,
        }
    }

    /// Computes the effect of a failure. `is_long`: the provider has said that it will not answer for at least [`rest`](Self::rest).
    pub fn change_after_failure(
        &self,
        standing: Option<FailoverState>,
        asked: ProviderSide,
        is_long: bool,
        now: DateTime<Utc>,
    ) -> Change {
        let standing = standing.unwrap_or_default();
        let failures = if is_long { self.after } else { standing.failures.saturating_add(1) };
        let is_enough = failures >= self.after;
        // The first provider was tried because its rest was over: one failure shows that it was too early.
        let is_trial = standing.since.is_some();
        let (standing, moved_to) = match asked {
            ProviderSide::First if is_enough || is_trial => {
                (FailoverState { failures: 0, since: Some(now) }, Some(ProviderSide::Fallback))
            }
            // Back to the first provider before its rest is over. It is on trial then, too.
            ProviderSide::Fallback if is_enough => {
                let before = now - self.rest;
                (FailoverState { failures: 0, since: Some(before) }, Some(ProviderSide::First))
            }
            _ => (FailoverState { failures, ..standing }, None),
        };
        Change { standing: Some(standing), moved_to }
    }

    pub fn change_after_answer(
        &self,
        standing: Option<FailoverState>,
        asked: ProviderSide,
    ) -> Change {
        match (standing, asked) {
            (Some(standing), ProviderSide::First) => {
                Change { standing: None, moved_to: standing.since.map(|_| ProviderSide::First) }
            }
            (Some(standing), ProviderSide::Fallback) => {
                Change { standing: Some(FailoverState { failures: 0, ..standing }), moved_to: None }
            }
            (None, _) => Change { standing: None, moved_to: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    const RULES: Rules = Rules { after: 3, rest: TimeDelta::seconds(900) };

    fn at(secs: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(1_800_000_000 + secs, 0).unwrap()
    }

    #[test]
    fn the_third_consecutive_failure_moves_a_conversation_and_an_answer_resets_the_count() {
        let mut standing = None;
        for _ in 0..2 {
            let change = RULES.change_after_failure(standing, ProviderSide::First, false, at(0));
            assert_eq!(change.moved_to, None);
            standing = change.standing;
        }
        assert_eq!(RULES.change_after_answer(standing, ProviderSide::First).standing, None);
        let change = RULES.change_after_failure(standing, ProviderSide::First, false, at(0));
        assert_eq!(change.moved_to, Some(ProviderSide::Fallback));
        assert_eq!(RULES.side(change.standing, at(899)), ProviderSide::Fallback);
        assert_eq!(RULES.side(change.standing, at(900)), ProviderSide::First);
        let at_once = RULES.change_after_failure(None, ProviderSide::First, true, at(0));
        assert_eq!(at_once.moved_to, Some(ProviderSide::Fallback));
    }

    #[test]
    fn the_first_provider_is_retried_and_one_failure_or_answer_decides() {
        let moved = Some(FailoverState { failures: 0, since: Some(at(0)) });
        let in_vain = RULES.change_after_failure(moved, ProviderSide::First, false, at(900));
        assert_eq!(in_vain.moved_to, Some(ProviderSide::Fallback));
        assert_eq!(RULES.side(in_vain.standing, at(1000)), ProviderSide::Fallback);
        let back = RULES.change_after_answer(moved, ProviderSide::First);
        assert_eq!((back.standing, back.moved_to), (None, Some(ProviderSide::First)));
        // The fallback's answers change nothing.
        assert_eq!(RULES.change_after_answer(moved, ProviderSide::Fallback).standing, moved);
    }

    #[test]
    fn a_fallback_that_fails_as_often_returns_the_conversation() {
        let mut standing = Some(FailoverState { failures: 0, since: Some(at(0)) });
        for n in 1..=3 {
            let change = RULES.change_after_failure(standing, ProviderSide::Fallback, false, at(n));
            assert_eq!(change.moved_to, (n == 3).then_some(ProviderSide::First), "{n}");
            standing = change.standing;
        }
        assert_eq!(RULES.side(standing, at(4)), ProviderSide::First);
        let change = RULES.change_after_failure(standing, ProviderSide::First, false, at(5));
        assert_eq!(change.moved_to, Some(ProviderSide::Fallback));
    }
}
