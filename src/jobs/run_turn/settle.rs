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
        /// It was stopped in the middle; the next call says so.
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
    let why = error.to_string();
    match error.class {
        Class::Retry { after } => again(why, after, None, false, facts),
        // Nobody told it to stop as far as this run knows.
        Class::Cancelled => again(why, None, None, true, facts),
        Class::Snooze { after, .. } => Fate::PutOff { why, after },
        Class::Rebuild { reason: Rebuild::Overflow | Rebuild::Truncated } => Fate::NoRoom { why },
        Class::Rebuild { reason: Rebuild::Poisoned } => rebuild(why, Reason::Poisoned, facts),
        Class::Rebuild { reason: Rebuild::Lost } => rebuild(why, Reason::Lost, facts),
        Class::Fail => Fate::Failed { why, interrupted: false },
    }
}

/// At once: what is wrong is the session, not the moment. Each rebuild leaves more of it out, and uses up an attempt.
fn rebuild(why: String, reason: Reason, facts: Facts) -> Fate {
    let helps =
        facts.has_history && !(reason == Reason::Lost && facts.rebuilt_in_vain == Some(reason));
    match helps {
        true => again(why, Some(Duration::ZERO), Some(reason), false, facts),
        false => Fate::Failed { why, interrupted: false },
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
