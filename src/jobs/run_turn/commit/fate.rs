//! The rule for the fate of a turn after its call. [`super::transaction`] writes it.

use std::time::Duration;

use crate::{
    domain::{amount::Refusal, sessions::Reason},
    providers::{Class, Error, Outcome, Rebuild},
    queue::Stop,
};

/// The fate of a turn after its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// A person, program or agent cancelled the task.
    Cancelled,
    /// The worker shuts down. Another one retries, without using an attempt.
    GivenBack,
    /// Retried as another attempt.
    Again {
        why: String,
        after: Option<Duration>,
        rebuild: Option<Reason>,
        /// It was stopped in the middle, or had used tools before it failed. A notice in the next call says so.
        interrupted: bool,
    },
    /// Retried without using an attempt.
    PutOff {
        why: String,
        after: Duration,
    },
    /// Waits until a budget has space for its next call, without using an attempt.
    WaitsForBudget {
        refusal: Box<Refusal>,
        /// As in [`Fate::Again`].
        interrupted: bool,
    },
    /// The task fails.
    Failed {
        why: String,
        interrupted: bool,
        /// The provider rejects its prompt, which is not sent again.
        rejected: bool,
        /// A budget refuses its next call.
        refusal: Option<Box<Refusal>>,
    },
    /// The answer does not match the result schema. The next turn of the task asks for a corrected one, without using an attempt.
    Correction {
        fault: String,
    },
    /// The answer does not match the result schema, and the task fails.
    Mismatch {
        why: String,
    },
    /// The call does not fit. The same attempt goes on when the conversation is smaller.
    NoRoom {
        why: String,
    },
    /// Another run may own the conversation: nothing is written.
    LeaseLost,
}

impl Fate {
    /// Returns the outcome for metrics and traces.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::GivenBack => "given_back",
            Self::Again { .. } => "retried",
            Self::PutOff { .. } | Self::WaitsForBudget { .. } => "snoozed",
            Self::Failed { .. } => "failed",
            Self::Correction { .. } => "corrected",
            Self::Mismatch { .. } => "mismatched",
            Self::NoRoom { .. } => "context_full",
            Self::LeaseLost => "lease_lost",
        }
    }

    /// Returns true if the turn has an answer, which stays in the conversation.
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Done | Self::Correction { .. } | Self::Mismatch { .. })
    }
}

/// Further inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct FateInput {
    pub stop: Option<Stop>,
    pub is_last_attempt: bool,
    /// True if there are messages before the prompt that a rebuilt session could leave out.
    pub has_history: bool,
    /// Reason for which the session was rebuilt, if no turn has succeeded since.
    pub rebuilt_in_vain: Option<Reason>,
}

pub fn decide(result: &Result<Outcome, Error>, facts: FateInput) -> Fate {
    let error = match (result, facts.stop) {
        (_, Some(Stop::LeaseLost)) => return Fate::LeaseLost,
        // An answer counts, even if a stop was requested meanwhile.
        (Ok(_), _) => return Fate::Done,
        (Err(_), Some(Stop::Cancelled)) => return Fate::Cancelled,
        (Err(_), Some(Stop::Drain)) => return Fate::GivenBack,
        (Err(_), Some(Stop::Deadline)) => {
            let why = "the turn exceeded its deadline".to_owned();
            return retry_or_fail(why, None, None, true, facts);
        }
        (Err(error), None) => error,
    };
    let (why, has_acted) = (error.to_string(), error.has_acted);
    let refusal = error.cause_as::<Refusal>().cloned().map(Box::new);
    match error.class {
        Class::Retry { after } => retry_or_fail(why, after, None, has_acted, facts),
        // Stopped for a reason that this run does not know.
        Class::Cancelled => retry_or_fail(why, None, None, true, facts),
        Class::Snooze { after, .. } => match refusal {
            Some(refusal) => Fate::WaitsForBudget { refusal, interrupted: has_acted },
            None => Fate::PutOff { why, after },
        },
        Class::Rebuild { reason: Rebuild::Overflow | Rebuild::Truncated } => Fate::NoRoom { why },
        Class::Rebuild { reason: Rebuild::Poisoned } => {
            let may_help = facts.rebuilt_in_vain != Some(Reason::Poisoned);
            reject(why, may_help, has_acted, facts)
        }
        Class::Reject => {
            let is_taken_over = matches!(
                facts.rebuilt_in_vain,
                Some(Reason::ProviderChanged | Reason::ModelChanged)
            );
            reject(why, is_taken_over, has_acted, facts)
        }
        Class::Rebuild { reason: Rebuild::Lost } => rebuild(why, Reason::Lost, has_acted, facts),
        Class::Fail => Fate::Failed { why, interrupted: has_acted, rejected: false, refusal },
    }
}

/// Retries at once with a rebuilt session. Uses an attempt.
fn rebuild(why: String, reason: Reason, has_acted: bool, facts: FateInput) -> Fate {
    match facts.has_history && facts.rebuilt_in_vain != Some(reason) {
        true => retry_or_fail(why, Some(Duration::ZERO), Some(reason), has_acted, facts),
        false => failed(why, has_acted),
    }
}

/// Decides about a call that the provider rejects, and would reject again. It has accepted the history before, so the
/// prompt is at fault: the task fails, and the history stays. Two histories are rebuilt without calls of tools, once:
/// one that this provider has never accepted, and one that it names as the reason.
fn reject(why: String, history_may_be_to_blame: bool, interrupted: bool, facts: FateInput) -> Fate {
    let may_help = history_may_be_to_blame && facts.has_history && !facts.is_last_attempt;
    if may_help {
        let rebuild = Some(Reason::Poisoned);
        return Fate::Again { why, after: Some(Duration::ZERO), rebuild, interrupted };
    }
    let is_unproven = facts.has_history && facts.rebuilt_in_vain == Some(Reason::Poisoned);
    let why = if is_unproven { format!("{why}; {WITHOUT_HISTORY}") } else { why };
    Fate::Failed { why, interrupted, rejected: true, refusal: None }
}

/// Hint for a history that the provider has never accepted.
const WITHOUT_HISTORY: &str = "if it rejects the next task too, the history may be the cause: a task with the session mode `fresh` starts without it";

fn failed(why: String, interrupted: bool) -> Fate {
    Fate::Failed { why, interrupted, rejected: false, refusal: None }
}

fn retry_or_fail(
    why: String,
    after: Option<Duration>,
    rebuild: Option<Reason>,
    interrupted: bool,
    facts: FateInput,
) -> Fate {
    match facts.is_last_attempt {
        true => failed(why, interrupted),
        false => Fate::Again { why, after, rebuild, interrupted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{
            Amount,
            amount::{Limit, Owner},
        },
        providers::{Durations, OutputFiles, Scope, StopReason, Usage},
        transcript::{Message, Role},
    };

    const FACTS: FateInput =
        FateInput { stop: None, is_last_attempt: false, has_history: true, rebuilt_in_vain: None };

    fn failure(class: Class) -> Result<Outcome, Error> {
        Err(Error::new("test", class, "it failed"))
    }

    fn answer() -> Result<Outcome, Error> {
        let message = Message::new(Role::Assistant, "Done.");
        Ok(Outcome {
            message,
            thinking: None,
            stop: StopReason::End,
            usage: Usage::default(),
            window_tokens: None,
            provider_message_id: None,
            durations: Durations::default(),
            conversation: None,
            files: OutputFiles::default(),
            spent: Vec::new(),
        })
    }

    #[test]
    fn an_answer_counts_despite_every_stop_except_a_lost_lease() {
        for stop in [None, Some(Stop::Cancelled), Some(Stop::Drain), Some(Stop::Deadline)] {
            assert_eq!(decide(&answer(), FateInput { stop, ..FACTS }), Fate::Done, "{stop:?}");
        }
        let lost = FateInput { stop: Some(Stop::LeaseLost), ..FACTS };
        assert_eq!(decide(&answer(), lost), Fate::LeaseLost);
    }

    #[test]
    fn the_source_of_a_stop_decides_the_fate() {
        let stopped =
            |stop| decide(&failure(Class::Cancelled), FateInput { stop: Some(stop), ..FACTS });
        assert_eq!(stopped(Stop::Cancelled), Fate::Cancelled);
        assert_eq!(stopped(Stop::Drain), Fate::GivenBack);
        assert_eq!(stopped(Stop::LeaseLost), Fate::LeaseLost);
        assert!(matches!(stopped(Stop::Deadline), Fate::Again { interrupted: true, .. }));
    }

    #[test]
    fn every_class_of_failure_ends_on_the_last_attempt() {
        let classes = [
            Class::Retry { after: None },
            Class::Rebuild { reason: Rebuild::Poisoned },
            Class::Rebuild { reason: Rebuild::Lost },
            Class::Reject,
            Class::Fail,
            Class::Cancelled,
        ];
        for class in classes {
            let last = decide(&failure(class), FateInput { is_last_attempt: true, ..FACTS });
            assert!(matches!(last, Fate::Failed { .. }), "{class:?}: {last:?}");
        }
        let after = Duration::from_secs(3);
        let busy = failure(Class::Snooze { after, scope: Scope::Host });
        let last = decide(&busy, FateInput { is_last_attempt: true, ..FACTS });
        assert_eq!(last, Fate::PutOff { why: "it failed".to_owned(), after });
    }

    #[test]
    fn a_call_that_a_budget_refuses_waits_or_fails_with_the_refusal() {
        let needed = Amount { micros: 0, tokens: 9 };
        let limit = Limit { micros: None, tokens: Some(9) };
        let owner = Owner::Agent("writer".into());
        let refusal = limit.check(owner, needed, Amount::ZERO, needed).unwrap_err();
        let refused = |class| decide(&Err(Error::new("test", class, refusal.clone())), FACTS);
        let (refusal, why) = (Box::new(refusal.clone()), refusal.to_string());
        let (interrupted, rejected) = (false, false);
        let snooze = Class::Snooze { after: Duration::ZERO, scope: Scope::Host };
        let waits = Fate::WaitsForBudget { refusal: refusal.clone(), interrupted };
        assert_eq!(refused(snooze), waits);
        let fails = Fate::Failed { why, interrupted, rejected, refusal: Some(refusal) };
        assert_eq!(refused(Class::Fail), fails);
    }

    #[test]
    fn a_rejected_prompt_fails_its_task_at_once_and_keeps_the_history() {
        let is_rejected = |fate: Fate| matches!(fate, Fate::Failed { rejected: true, .. });
        let rejected = failure(Class::Reject);
        for rebuilt_in_vain in [None, Some(Reason::New), Some(Reason::PromptChanged)] {
            assert!(is_rejected(decide(&rejected, FateInput { rebuilt_in_vain, ..FACTS })));
        }
        // It is unknown yet if this provider accepts the history.
        for reason in [Reason::ProviderChanged, Reason::ModelChanged] {
            let facts = FateInput { rebuilt_in_vain: Some(reason), ..FACTS };
            let fate = decide(&rejected, facts);
            assert!(
                matches!(fate, Fate::Again { rebuild: Some(Reason::Poisoned), .. }),
                "{fate:?}"
            );
            assert!(is_rejected(decide(&rejected, FateInput { is_last_attempt: true, ..facts })));
            assert!(is_rejected(decide(&rejected, FateInput { has_history: false, ..facts })));
        }
        let facts = FateInput { rebuilt_in_vain: Some(Reason::Poisoned), ..FACTS };
        for class in [Class::Reject, Class::Rebuild { reason: Rebuild::Poisoned }] {
            let Fate::Failed { why, rejected, .. } = decide(&failure(class), facts) else {
                panic!()
            };
            assert!(rejected && why.contains("`fresh`"), "{why}");
        }
    }

    #[test]
    fn a_rebuild_is_tried_only_while_history_can_be_left_out() {
        let poisoned = failure(Class::Rebuild { reason: Rebuild::Poisoned });
        let Fate::Again { rebuild, after, .. } = decide(&poisoned, FACTS) else { panic!() };
        assert_eq!((rebuild, after), (Some(Reason::Poisoned), Some(Duration::ZERO)));
        let bare = FateInput { has_history: false, ..FACTS };
        assert!(matches!(decide(&poisoned, bare), Fate::Failed { .. }));
        let lost = failure(Class::Rebuild { reason: Rebuild::Lost });
        assert!(matches!(decide(&lost, FACTS), Fate::Again { .. }));
        let again = FateInput { rebuilt_in_vain: Some(Reason::Lost), ..FACTS };
        assert!(matches!(decide(&lost, again), Fate::Failed { .. }));
    }
}
