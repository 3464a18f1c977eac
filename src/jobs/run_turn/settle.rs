//! What becomes of a turn whose call has ended. The rule, and only that; [`super::ending`] writes it.

use std::time::Duration;

use crate::{
    domain::sessions::Reason,
    providers::{Class, Error, Outcome, Rebuild},
    queue::Stop,
};

/// What is written for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// Somebody cancelled the task.
    Cancelled,
    /// The process goes down; the next one tries again and burns no attempt for this.
    GivenBack,
    /// Tried again as another attempt.
    Again {
        why: String,
        after: Option<Duration>,
        rebuild: Option<Reason>,
        /// It was stopped in the middle, or had used tools before it failed; the next call says so.
        interrupted: bool,
    },
    /// Tried again, and no attempt is burned.
    PutOff {
        why: String,
        after: Duration,
    },
    /// The task fails.
    Failed {
        why: String,
        interrupted: bool,
    },
    /// Does not fit: once the conversation is smaller, the same attempt goes on.
    NoRoom {
        why: String,
    },
    /// Nothing may be written.
    LeaseLost,
}

/// What else the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) stop: Option<Stop>,
    pub(super) is_last_attempt: bool,
    /// There is something in front of the prompt that a rebuilt session could leave out.
    pub(super) has_history: bool,
    /// The session was rebuilt for this, and nothing has succeeded since.
    pub(super) rebuilt_in_vain: Option<Reason>,
}

pub(super) fn decide(result: &Result<Outcome, Error>, facts: Facts) -> Fate {
    let error = match (result, facts.stop) {
        (_, Some(Stop::LeaseLost)) => return Fate::LeaseLost,
        // An answer that is there counts, whoever has asked to stop meanwhile.
        (Ok(_), _) => return Fate::Done,
        (Err(_), Some(Stop::Cancelled)) => return Fate::Cancelled,
        (Err(_), Some(Stop::Drain)) => return Fate::GivenBack,
        (Err(_), Some(Stop::Deadline)) => {
            let why = "the turn ran longer than its deadline".to_owned();
            return again(why, None, None, true, facts);
        }
        (Err(error), None) => error,
    };
    let (why, has_acted) = (error.to_string(), error.has_acted);
    match error.class {
        Class::Retry { after } => again(why, after, None, has_acted, facts),
        // Nobody told it to stop as far as this run knows.
        Class::Cancelled => again(why, None, None, true, facts),
        Class::Snooze { after, .. } => Fate::PutOff { why, after },
        Class::Rebuild { reason: Rebuild::Overflow | Rebuild::Truncated } => Fate::NoRoom { why },
        Class::Rebuild { reason: Rebuild::Poisoned } => {
            rebuild(why, Reason::Poisoned, has_acted, facts)
        }
        Class::Rebuild { reason: Rebuild::Lost } => rebuild(why, Reason::Lost, has_acted, facts),
        Class::Fail => Fate::Failed { why, interrupted: has_acted },
    }
}

/// At once: what is wrong is the session, not the moment. Each rebuild leaves more of it out, and uses up an attempt.
fn rebuild(why: String, reason: Reason, has_acted: bool, facts: Facts) -> Fate {
    let helps =
        facts.has_history && !(reason == Reason::Lost && facts.rebuilt_in_vain == Some(reason));
    match helps {
        true => again(why, Some(Duration::ZERO), Some(reason), has_acted, facts),
        false => Fate::Failed { why, interrupted: has_acted },
    }
}

fn again(
    why: String,
    after: Option<Duration>,
    rebuild: Option<Reason>,
    interrupted: bool,
    facts: Facts,
) -> Fate {
    match facts.is_last_attempt {
        true => Fate::Failed { why, interrupted },
        false => Fate::Again { why, after, rebuild, interrupted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        providers::{Durations, Scope, StopReason, Usage},
        transcript::{Message, Role},
    };

    const FACTS: Facts =
        Facts { stop: None, is_last_attempt: false, has_history: true, rebuilt_in_vain: None };

    fn failed(class: Class) -> Result<Outcome, Error> {
        Err(Error::new("test", class, "it failed"))
    }

    fn answered() -> Result<Outcome, Error> {
        let message = Message {
            role: Role::Assistant,
            text: "Done.".to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
        };
        Ok(Outcome {
            message,
            thinking: None,
            stop: StopReason::End,
            usage: Usage::default(),
            window_tokens: None,
            provider_message_id: None,
            durations: Durations::default(),
            conversation: None,
            spent: Vec::new(),
        })
    }

    #[test]
    fn an_answer_counts_whoever_asked_to_stop_but_not_without_the_lease() {
        for stop in [None, Some(Stop::Cancelled), Some(Stop::Drain), Some(Stop::Deadline)] {
            assert_eq!(decide(&answered(), Facts { stop, ..FACTS }), Fate::Done, "{stop:?}");
        }
        let lost = Facts { stop: Some(Stop::LeaseLost), ..FACTS };
        assert_eq!(decide(&answered(), lost), Fate::LeaseLost);
    }

    #[test]
    fn whoever_stopped_the_call_decides_what_follows() {
        let stopped = |stop| decide(&failed(Class::Cancelled), Facts { stop: Some(stop), ..FACTS });
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
            Class::Fail,
            Class::Cancelled,
        ];
        for class in classes {
            let last = decide(&failed(class), Facts { is_last_attempt: true, ..FACTS });
            assert!(matches!(last, Fate::Failed { .. }), "{class:?}: {last:?}");
        }
        let after = Duration::from_secs(3);
        let busy = failed(Class::Snooze { after, scope: Scope::Host });
        let last = decide(&busy, Facts { is_last_attempt: true, ..FACTS });
        assert_eq!(last, Fate::PutOff { why: "it failed".to_owned(), after });
    }

    #[test]
    fn a_rebuild_is_tried_only_while_there_is_something_to_leave_out() {
        let poisoned = failed(Class::Rebuild { reason: Rebuild::Poisoned });
        let Fate::Again { rebuild, after, .. } = decide(&poisoned, FACTS) else { panic!() };
        assert_eq!((rebuild, after), (Some(Reason::Poisoned), Some(Duration::ZERO)));
        let bare = Facts { has_history: false, ..FACTS };
        assert!(matches!(decide(&poisoned, bare), Fate::Failed { .. }));
        let lost = failed(Class::Rebuild { reason: Rebuild::Lost });
        assert!(matches!(decide(&lost, FACTS), Fate::Again { .. }));
        let again = Facts { rebuilt_in_vain: Some(Reason::Lost), ..FACTS };
        assert!(matches!(decide(&lost, again), Fate::Failed { .. }));
    }
}
