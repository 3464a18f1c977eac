//! Errors that abort a turn before it commits.

use std::time::Duration;

use crate::{
    domain::{
        StatementError, agents::LookupError, amount::Refusal, budgets::ReserveError, class,
        failovers::SkippedEntry, sessions, tasks, turn_phases,
    },
    jobs::{rate_limits::LimitRefusal, services::REPAIR_PAUSE},
    providers::{self, Class, Origin, Scope},
    queue::{self, BoxError, CommitError, JobError, Run, Stop, WaitCause},
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the task has already ended")]
    Ended,
    /// The task of this job has another job by now.
    #[error("job {0} no longer has a task")]
    NoTask(i64),
    /// Another run has the conversation, or the lease has expired. Nothing is written.
    #[error("another run has taken over the job")]
    Overtaken,
    #[error("{}", .0.why)]
    Refused(BeginRefusal),
    /// The turn moves on to another entry of its agent's chain.
    #[error("{}", .0.because)]
    MovesOn(Box<SkippedEntry>),
    /// The commit of the run's end was refused or not confirmed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A failure that a retry may overcome.
    #[error(transparent)]
    Undone(BoxError),
}

/// The reason why a turn may not begin.
#[derive(Debug)]
pub(crate) struct BeginRefusal {
    /// Message for people, with the next step.
    pub(super) why: String,
    /// Wait before the next look. `None`: waiting would not help.
    pub(super) again_after: Option<Duration>,
    /// Cause of the wait. A broken agent file, for example, has none.
    pub(super) cause: Option<WaitCause>,
    /// Set if a budget does not allow the first call.
    pub(super) budget: Option<Box<Refusal>>,
    /// Set if the provider refuses calls until then.
    pub(super) busy: Option<Busy>,
    /// Set if the call has no share of a rate limit.
    pub(super) limit: Option<Box<LimitRefusal>>,
    /// True if the first call may be charged more than the chain allows for its entry.
    pub(super) is_too_dear: bool,
}

/// A provider that refuses calls for now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Busy {
    /// Refusals in a row, where they are counted.
    pub(super) refusals: i32,
}

/// Code of a call that a budget refuses, before the turn or in it.
pub(super) const BUDGET_CODE: &str = "turn.budget";
/// Wait for running turns to release their reservations.
pub(super) const BUDGET_PAUSE: Duration = Duration::from_secs(5);
/// Wait after a call that was not made, because the database was unreachable.
const DATABASE_PAUSE: Duration = Duration::from_secs(5);

/// Builds the error of a call that was not made, because a statement before it has failed. An unreachable database uses up no attempt. The
/// end of the turn checks if another run has the conversation by now.
pub(super) fn database_error(code: &'static str, error: impl Into<BoxError>) -> providers::Error {
    let error = error.into();
    let class = match queue::is_unavailable(&*error) {
        true => Class::Snooze { after: DATABASE_PAUSE, scope: Scope::Host },
        false => Class::Retry { after: None },
    };
    providers::Error::new(code, class, error).of(Origin::Host).before_call()
}

impl BeginRefusal {
    pub(super) fn for_good(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            again_after: None,
            cause: None,
            budget: None,
            busy: None,
            limit: None,
            is_too_dear: false,
        }
    }

    pub(super) fn later(why: impl Into<String>, after: Duration) -> Self {
        Self { again_after: Some(after), ..Self::for_good(why) }
    }

    /// Returns the code for logs.
    pub(super) fn code(&self) -> &'static str {
        match (&self.budget, self.busy) {
            (Some(_), _) => BUDGET_CODE,
            (None, Some(_)) => "turn.busy",
            (None, None) => "turn.refused",
        }
    }

    /// Waits for the provider, for a limited time.
    pub(super) fn busy(why: impl Into<String>, after: Duration, refusals: i32) -> Self {
        let cause = Some(WaitCause::Provider);
        Self { busy: Some(Busy { refusals }), cause, ..Self::later(why, after) }
    }
}

impl From<LookupError> for BeginRefusal {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Broken { .. } => Self::later(error.to_string(), REPAIR_PAUSE),
            LookupError::Unknown { .. } => Self::for_good(error.to_string()),
        }
    }
}

impl From<LimitRefusal> for BeginRefusal {
    fn from(refusal: LimitRefusal) -> Self {
        let why = refusal.describe();
        let cause = Some(WaitCause::Limit);
        Self { limit: Some(Box::new(refusal)), cause, ..Self::later(why, Duration::ZERO) }
    }
}

impl From<Refusal> for BeginRefusal {
    fn from(refusal: Refusal) -> Self {
        let again_after = refusal.may_pass_later().then_some(BUDGET_PAUSE);
        let why = refusal.to_string();
        let cause = Some(WaitCause::Limit);
        Self { again_after, cause, budget: Some(Box::new(refusal)), ..Self::for_good(why) }
    }
}

impl Error {
    pub(super) fn undone(error: impl Into<BoxError>) -> Self {
        Self::Undone(error.into())
    }

    /// Converts into an error of the job. The queue has logged a lost lease itself.
    pub(super) fn into_job_error(self, run: &Run) -> JobError {
        match self {
            Self::Overtaken => {
                tracing::info!(
                    job.id = run.job_id(),
                    "another run took over the turn: nothing was written"
                );
                CommitError::LeaseLost { job_id: run.job_id(), lease: run.lease() }.into()
            }
            Self::Commit(error) => error.into(),
            error => JobError::retry(error.into_cause()),
        }
    }

    /// Returns the inner error: the queue looks for a database error in it, which uses no attempt.
    fn into_cause(self) -> BoxError {
        match self {
            Self::Undone(error) => error,
            error => error.into(),
        }
    }

    /// Returns true if another write may succeed, because the model's answer was paid for. `has_tries` bounds retries
    /// of unknown errors. An unreachable database is retried until the lease has expired.
    pub(super) fn can_retry_write(&self, run: &Run, has_tries: bool) -> bool {
        let cause: &(dyn std::error::Error + 'static) = match self {
            _ if run.stop_reason() == Some(Stop::LeaseLost) => return false,
            Self::Commit(CommitError::LeaseLost { .. }) => return false,
            Self::Commit(error) => error,
            Self::Undone(error) => error.as_ref(),
            Self::Ended
            | Self::NoTask(_)
            | Self::Overtaken
            | Self::Refused(_)
            | Self::MovesOn(_) => return false,
        };
        has_tries || class::is_database_away(cause)
    }
}

impl From<sessions::Error> for Error {
    fn from(error: sessions::Error) -> Self {
        match error {
            sessions::Error::Overtaken(_) => Self::Overtaken,
            error => Self::undone(error),
        }
    }
}

impl From<tasks::Error> for Error {
    fn from(error: tasks::Error) -> Self {
        match error {
            tasks::Error::Ended { .. } => Self::Ended,
            tasks::Error::NoTaskOfJob(job_id) => Self::NoTask(job_id),
            tasks::Error::Budget(refusal) => Self::Refused(refusal.into()),
            error => Self::undone(error),
        }
    }
}

impl From<turn_phases::Error> for Error {
    fn from(error: turn_phases::Error) -> Self {
        match error {
            turn_phases::Error::Session(error) => error.into(),
            turn_phases::Error::Task(error) => error.into(),
            turn_phases::Error::Budget(ReserveError::Refused(refusal)) => {
                Self::Refused(refusal.into())
            }
            turn_phases::Error::Budget(ReserveError::Database(error))
            | turn_phases::Error::Database(error) => error.into(),
        }
    }
}

impl From<StatementError> for Error {
    fn from(error: StatementError) -> Self {
        Self::undone(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::is_unavailable;

    #[test]
    fn the_queue_finds_database_faults_in_errors_of_a_turn() {
        let cause = Error::undone(sqlx::Error::PoolTimedOut).into_cause();
        assert!(is_unavailable(&*cause), "{cause}");
        assert!(!is_unavailable(&*Error::NoTask(7).into_cause()));
    }

    #[test]
    fn only_an_unreachable_database_uses_up_no_attempt_of_a_call() {
        let class = |error| database_error("test", error).class;
        assert!(matches!(class(sqlx::Error::PoolTimedOut), Class::Snooze { .. }));
        assert!(matches!(class(sqlx::Error::RowNotFound), Class::Retry { .. }));
    }
}
