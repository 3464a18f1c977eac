//! What a handler says: the kind of a job, its policy, and how a run ends.
//!
//! A handler is an async function `(payload, Run, state) -> Result<End, JobError>`. There is no default for an
//! error: at each `?` the author writes whether the job is tried again, put off, or given up, as in
//! `.map_err(JobError::retry)?`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Serialize, de::DeserializeOwned};

use super::run::Committed;
use dalsegno_base::causes::causes;

/// The error of whatever a handler called.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a handler returns.
pub type HandlerResult = Result<End, JobError>;

/// A kind of work. The type is the payload, stored as JSON.
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name in the `kind` column. Renaming it orphans the jobs that are waiting under the old name.
    const KIND: &'static str;

    /// How jobs of this kind are queued, retried and given up.
    fn policy() -> Policy {
        Policy::default()
    }
}

/// How jobs of one kind are queued, retried and given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The queue that [`enqueue`](super::enqueue()) puts the job into unless told otherwise.
    pub queue: &'static str,
    /// Failed attempts after which the job is dead. Crashes, snoozes, drains and a lost database do not count.
    pub max_attempts: i16,
    /// The wait before the next attempt.
    pub backoff: Backoff,
    /// The longest that one attempt may run; `None` sets no limit.
    pub deadline: Option<Duration>,
    /// What becomes of the lane when its head dies.
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

/// The wait before the next attempt: `first`, doubled for each further failure, at most `cap`, give or take a quarter.
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

/// What becomes of a lane when the job at its head dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneFailure {
    /// The next job of the lane becomes its head.
    Continue,
    /// The lane waits until a person releases it.
    Hold,
}

/// How a run ended, when it ended as the handler wished.
#[derive(Debug)]
#[must_use = "a run ends only when its end is returned"]
pub enum End {
    /// The work is done; the worker writes the end for the handler.
    Done,
    /// The handler has already written the end, in one transaction with its own writes.
    Committed(Committed),
    /// Not now. Burns no attempt, and keeps the place in the lane.
    Snooze {
        /// When to try again.
        until: Until,
        /// What is waited for, for the person who asks.
        reason: String,
    },
}

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this long, by the clock of the database.
    After(Duration),
    /// At this moment, for instance the reset time that a rate limit named.
    At(DateTime<Utc>),
}

/// Why a run did not end as the handler wished, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct JobError {
    /// What to do about it.
    pub decision: Decision,
    /// What went wrong.
    pub source: BoxError,
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Burn an attempt and try again, after the policy's backoff or after the time given here. Burns none where the error is that
    /// the database cannot be reached.
    Retry(Option<Duration>),
    /// Try again without burning an attempt.
    Snooze(Until),
    /// Give the job up.
    Fail,
    /// Write nothing: the lease is lost, and the job belongs to somebody else.
    Stop,
}

impl JobError {
    /// Burns an attempt and tries again after the policy's backoff.
    pub fn retry(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Retry(None), source)
    }

    /// Burns an attempt and tries again after `wait`: `.map_err(JobError::retry_after(wait))?`.
    pub fn retry_after<E: Into<BoxError>>(wait: Duration) -> impl FnOnce(E) -> Self {
        move |source| Self::new(Decision::Retry(Some(wait)), source)
    }

    /// Tries again at `until` without burning an attempt: `.map_err(JobError::snooze(until))?`.
    pub fn snooze<E: Into<BoxError>>(until: Until) -> impl FnOnce(E) -> Self {
        move |source| Self::new(Decision::Snooze(until), source)
    }

    /// Gives the job up at once: trying again cannot help.
    pub fn fail(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Fail, source)
    }

    pub(super) fn stop(source: impl Into<BoxError>) -> Self {
        Self::new(Decision::Stop, source)
    }

    fn new(decision: Decision, source: impl Into<BoxError>) -> Self {
        Self { decision, source: source.into() }
    }

    /// The error with its causes, outermost first, as one line for the record of the attempt.
    pub fn chain(&self) -> String {
        causes(&*self.source)
    }
}
