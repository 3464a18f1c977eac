//! The interface of handlers: the kind of a job, its policy, and the end of a run.
//!
//! A handler is an async function `(payload, Run, state) -> Result<End, JobError>`. An error has no default decision.
//! At each `?` the author writes whether the job is retried, snoozed or failed, as in `.map_err(JobError::retry)?`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Serialize, de::DeserializeOwned};

use super::run::CommitProof;
use dalsegno_base::causes::causes;

/// The error of a function that a handler called.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a handler.
pub type HandlerResult = Result<End, JobError>;

/// A kind of work. The type is the payload, stored as JSON.
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name in the `kind` column. Renaming it orphans the jobs that are waiting under the old name.
    const KIND: &'static str;

    /// Returns how jobs of this kind are queued, retried and failed.
    fn policy() -> Policy {
        Policy::default()
    }
}

/// The queue, retries and limits of jobs of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The queue that [`enqueue`](super::enqueue()) puts the job into unless told otherwise.
    pub queue: &'static str,
    /// Failed attempts after which the job is dead. Crashes, snoozes, drains and a lost database do not count.
    pub max_attempts: i16,
    /// The wait before the next attempt.
    pub backoff: Backoff,
    /// Time limit of one attempt; `None` sets no limit.
    pub deadline: Option<Duration>,
    /// Effect on the lane when its head dies.
    pub lane_failure: LaneFailure,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            queue: "default",
            max_attempts: 5,
            backoff: Backoff::default(),
            deadline: None,
            lane_failure: LaneFailure::Continue,
        }
    }
}

/// The wait before the next attempt: `first`, doubled for each further failure, at most `cap`, with a jitter of 25 %.
///
/// It is computed and stored by the database, so it survives the process and follows one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), cap: Duration::from_secs(15 * 60) }
    }
}

/// The effect on a lane when the job at its head dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneFailure {
    /// The next job of the lane becomes its head.
    Continue,
    /// The lane waits until a person releases it.
    Hold,
}

/// The end of a run that its handler chose.
#[derive(Debug)]
#[must_use = "a run ends only when its end is returned"]
pub enum End {
    /// The work is done; the worker writes the end for the handler.
    Done,
    /// The handler has already written the end, in one transaction with its own writes.
    Committed(CommitProof),
    /// The job runs again later. Uses up no attempt and keeps its place in the lane.
    Snooze {
        /// Time of the next run.
        until: HoldUntil,
        /// Reason for the wait, shown to people who look at the job.
        reason: String,
    },
}

/// The time of the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldUntil {
    /// After this long, by the clock of the database.
    After(Duration),
    /// At this moment, for instance the reset time that a rate limit named.
    At(DateTime<Utc>),
}

/// The cause of a wait that a run has chosen. `None` in its place: another cause, which only the reason of the run names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitCause {
    /// The provider of the run is busy, refused its call, or cannot be reached.
    Provider,
    /// A limit of this service has no space: a budget or a rate limit.
    Limit,
    /// The provider has the call as a batch, and has not answered yet.
    Batch,
}

impl WaitCause {
    /// Returns the value of the column `runs.wait_cause`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Limit => "limit",
            Self::Batch => "batch",
        }
    }
}

/// The error of a run, and the decision about it.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct JobError {
    /// Decision about the job.
    pub decision: Decision,
    /// Error that caused it.
    pub source: BoxError,
}

/// The decision after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Uses up an attempt and retries after the policy's backoff, or after the time given here. Uses up none if the
    /// error is that the database is unavailable.
    Retry(Option<Duration>),
    /// Retries without using up an attempt.
    Snooze(HoldUntil, Option<WaitCause>),
    /// Fails the job for good.
    Fail,
    /// Writes nothing: the lease is lost, and the job belongs to another worker.
    Stop,
}

impl JobError {
    /// Uses up an attempt and retries after the policy's backoff.
    pub fn retry(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Retry(None), source)
    }

    /// Uses up an attempt and retries after `wait`: `.map_err(JobError::retry_after(wait))?`.
    pub fn retry_after<E: Into<BoxError>>(wait: Duration) -> impl FnOnce(E) -> Self {
        move |source| Self::new(Decision::Retry(Some(wait)), source)
    }

    /// Retries at `until` without using up an attempt: `.map_err(JobError::snooze(until))?`.
    pub fn snooze<E: Into<BoxError>>(until: HoldUntil) -> impl FnOnce(E) -> Self {
        Self::snooze_for(None, until)
    }

    /// Retries as [`snooze`](Self::snooze), with the cause of the wait.
    pub fn snooze_for<E: Into<BoxError>>(
        cause: Option<WaitCause>,
        until: HoldUntil,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::new(Decision::Snooze(until, cause), source)
    }

    /// Fails the job at once, for errors that a retry cannot mend.
    pub fn fail(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Fail, source)
    }

    pub(super) fn stop(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Stop, source)
    }

    fn new(decision: Decision, source: impl Into<BoxError>) -> Self {
        Self { decision, source: source.into() }
    }

    /// Returns the error with its causes, outermost first, as one line for the record of the attempt.
    pub fn chain(&self) -> String {
        causes(&*self.source)
    }
}
