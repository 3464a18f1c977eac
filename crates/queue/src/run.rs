//! A run of a job, as its handler sees it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{PgPool, Postgres, Transaction};
use tokio_util::sync::CancellationToken;

use super::{
    crash_points::{CrashPoint, CrashPoints},
    ends::{self, Death, EndKind, Outcomes},
    job::{Backoff, End, HoldUntil, JobError, Policy, WaitCause},
    telemetry,
};
use dalsegno_base::causes::causes;

/// One run of a job: its identity, its fence, and the token that stops it.
#[derive(Clone)]
pub struct Run(Arc<Inner>);

struct Inner {
    facts: ClaimedJob,
    /// True if the policy of the kind holds the lane when the job dies.
    hold_lane: bool,
    cancel: CancellationToken,
    stop: Mutex<Option<Stop>>,
    /// True once the handler has sent the commit of its end. From then on a renewal may find the job without its lease
    /// although nothing is lost.
    is_ending: AtomicBool,
    shared: Arc<RunContext>,
}

/// The properties of the job that the claim returned.
#[derive(Debug)]
pub(super) struct ClaimedJob {
    pub(super) job_id: i64,
    pub(super) lease: i64,
    pub(super) kind: String,
    pub(super) queue: String,
    pub(super) lane: Option<String>,
    pub(super) attempt: i16,
    pub(super) max_attempts: i16,
    pub(super) timeout_secs: Option<i32>,
    pub(super) headers: Option<String>,
}

/// The state that all runs of a worker share.
pub(super) struct RunContext {
    pub(super) pool: PgPool,
    pub(super) crash_points: CrashPoints,
}

/// The reason why a run is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The job was cancelled.
    Cancelled,
    /// The process shuts down; the job is given back and no attempt is used up.
    Drain,
    /// The attempt ran longer than its policy allows.
    Deadline,
    /// The job belongs to another worker, or will before this worker can prevent it. The run must write nothing.
    LeaseLost,
}

/// The proof that a handler committed its own end. Only [`Run::commit`] makes one.
#[derive(Debug)]
pub struct CommitProof {
    pub(super) lane_owed: bool,
    pub(super) outcomes: Outcomes,
}

/// The reason why a handler's own commit failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The fence was closed.
    #[error("this worker lost job {job_id} (lease {lease} has ended); its writes were rolled back")]
    LeaseLost {
        /// The job.
        job_id: i64,
        /// The lease that is over.
        lease: i64,
    },
    /// The statement that writes the end failed.
    #[error("cannot write the end of job {job_id} into the handler's transaction")]
    WriteEnd {
        /// The job.
        job_id: i64,
        /// Error of the database.
        #[source]
        source: sqlx::Error,
    },
    /// The database did not confirm the commit, so it may or may not have happened.
    #[error("cannot commit the end of job {job_id}")]
    Commit {
        /// The job.
        job_id: i64,
        /// Error of the database.
        #[source]
        source: sqlx::Error,
    },
}

impl From<CommitError> for JobError {
    /// A lost lease stops the run quietly. A failed commit is retried, which is safe in both cases: if it happened, the
    /// job is gone and the retry that is written next finds no row under this lease.
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::LeaseLost { .. } => Self::stop(error),
            CommitError::WriteEnd { .. } | CommitError::Commit { .. } => Self::retry(error),
        }
    }
}

impl Run {
    pub(super) fn new(facts: ClaimedJob, hold_lane: bool, shared: Arc<RunContext>) -> Self {
        Self(Arc::new(Inner {
            facts,
            hold_lane,
            cancel: CancellationToken::new(),
            stop: Mutex::new(None),
            is_ending: AtomicBool::new(false),
            shared,
        }))
    }

    /// The job's id.
    pub fn job_id(&self) -> i64 {
        self.0.facts.job_id
    }

    /// Number of this claim. Every write of this run that other processes can see has to be conditional on it.
    pub fn lease(&self) -> i64 {
        self.0.facts.lease
    }

    /// The job's kind.
    pub fn kind(&self) -> &str {
        &self.0.facts.kind
    }

    /// The queue that the job was claimed from.
    pub fn queue(&self) -> &str {
        &self.0.facts.queue
    }

    /// The lane whose head the job is.
    pub fn lane(&self) -> Option<&str> {
        self.0.facts.lane.as_deref()
    }

    /// Number of this attempt, from 1.
    pub fn attempt(&self) -> i16 {
        self.0.facts.attempt
    }

    /// Number of failed attempts after which the job is dead.
    pub fn max_attempts(&self) -> i16 {
        self.0.facts.max_attempts
    }

    /// The headers given at enqueue as JSON text, for instance the W3C trace context.
    pub fn headers(&self) -> Option<&str> {
        self.0.facts.headers.as_deref()
    }

    /// The token that is cancelled when the run has to stop. A result that the handler returns afterwards still counts,
    /// if it returns in time.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// The reason why the run has to stop, once it has to.
    pub fn stop_reason(&self) -> Option<Stop> {
        *self.0.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pool that handlers use.
    pub fn pool(&self) -> &PgPool {
        &self.0.shared.pool
    }

    /// Writes the end of this run into `tx` and commits it, so that the handler's writes and the end of the job are
    /// atomic. If the lease is lost, everything is rolled back.
    ///
    /// ```ignore
    /// let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
    /// store(&mut tx, &reply).await.map_err(JobError::retry)?;
    /// Ok(run.commit(tx).await?)
    /// ```
    pub async fn commit(&self, tx: Transaction<'static, Postgres>) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::Done).await
    }

    /// Commits as [`commit`](Self::commit), but the job runs again at `until` and no attempt is used up.
    pub async fn commit_snooze(
        &self,
        tx: Transaction<'static, Postgres>,
        until: HoldUntil,
        cause: Option<WaitCause>,
        reason: &str,
    ) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::Snooze { until, cause, reason: reason.to_owned() }).await
    }

    /// Commits as [`commit`](Self::commit), but the job is held until a person decides, and no attempt is used up.
    pub async fn commit_held(
        &self,
        tx: Transaction<'static, Postgres>,
        reason: &str,
    ) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::Held { reason: reason.to_owned() }).await
    }

    /// Commits as [`commit`](Self::commit), but the job waits for `dalsegno.signal`, and no attempt is used up. It
    /// loses its place in its lane, which goes on without it.
    pub async fn commit_signal_wait(
        &self,
        tx: Transaction<'static, Postgres>,
        reason: &str,
    ) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::AwaitSignal { reason: reason.to_owned() }).await
    }

    /// Commits as [`commit`](Self::commit), but the job fails for good: the handler's writes say why.
    pub async fn commit_failure(
        &self,
        tx: Transaction<'static, Postgres>,
        error: &str,
    ) -> Result<End, CommitError> {
        let hold_lane = self.0.hold_lane;
        self.commit_as(
            tx,
            &EndKind::Fail { death: Death::Failed, hold_lane, error: error.to_owned() },
        )
        .await
    }

    /// Commits as [`commit`](Self::commit), but an attempt has failed and the job runs again: after `wait`, or after
    /// the `backoff` of its kind. For attempts that are not the last. The caller compares [`attempt`](Self::attempt)
    /// with [`max_attempts`](Self::max_attempts), because only it knows what else ends with the last one.
    pub async fn commit_retry(
        &self,
        tx: Transaction<'static, Postgres>,
        backoff: Backoff,
        wait: Option<Duration>,
        error: &str,
    ) -> Result<End, CommitError> {
        let asked_secs = wait.map(|wait| wait.as_secs_f64());
        let error = error.to_owned();
        self.commit_as(tx, &EndKind::Retry { cause: "error", error, backoff, asked_secs }).await
    }

    /// Commits as [`commit`](Self::commit), but the job ends as cancelled.
    pub async fn commit_cancelled(
        &self,
        tx: Transaction<'static, Postgres>,
    ) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::Cancelled { error: None }).await
    }

    /// Commits as [`commit`](Self::commit), but the job is given back for any worker to claim, and no attempt is used up.
    pub async fn commit_given_back(
        &self,
        tx: Transaction<'static, Postgres>,
    ) -> Result<End, CommitError> {
        self.commit_as(tx, &EndKind::GivenBack).await
    }

    async fn commit_as(
        &self,
        mut tx: Transaction<'static, Postgres>,
        ending: &EndKind,
    ) -> Result<End, CommitError> {
        let (job_id, lease) = (self.job_id(), self.lease());
        let crash_points = self.0.shared.crash_points;
        crash_points.pass(CrashPoint::BeforeEnd);
        let written = ends::write(&mut tx, self, ending)
            .await
            .map_err(|source| CommitError::WriteEnd { job_id, source })?;
        if !written.held {
            telemetry::record_rejected(1);
            // Dropping the transaction would roll back as well, but only when its connection is used again.
            if let Err(error) = tx.rollback().await {
                tracing::debug!(
                    job.id = job_id,
                    error = causes(&error),
                    "cannot roll back a run that lost its lease"
                );
            }
            return Err(CommitError::LeaseLost { job_id, lease });
        }
        crash_points.pass(CrashPoint::AfterEndWriteBeforeCommit);
        self.0.is_ending.store(true, Ordering::SeqCst);
        if let Err(source) = tx.commit().await {
            // The commit may or may not have happened, so the lease decides again.
            self.0.is_ending.store(false, Ordering::SeqCst);
            return Err(CommitError::Commit { job_id, source });
        }
        crash_points.pass(CrashPoint::AfterCommit);
        let outcomes = ending.outcomes(written.holds_lane);
        Ok(End::Committed(CommitProof { lane_owed: written.lane_owed, outcomes }))
    }

    /// Returns the time limit of this run: the job's own, or that of the policy.
    pub(super) fn deadline(&self, policy: &Policy) -> Option<Duration> {
        let own = self
            .0
            .facts
            .timeout_secs
            .and_then(|secs| u64::try_from(secs).ok())
            .map(Duration::from_secs);
        own.or(policy.deadline)
    }

    /// Returns true if the handler's commit of its end is in flight or done.
    pub(super) fn is_ending(&self) -> bool {
        self.0.is_ending.load(Ordering::SeqCst)
    }

    /// Tells the run to stop. The first reason stays, but a lost lease overrules all others: the run must then write nothing.
    pub(super) fn stop(&self, why: Stop) {
        {
            let mut stop = self.0.stop.lock().unwrap_or_else(PoisonError::into_inner);
            if stop.is_none() || why == Stop::LeaseLost {
                *stop = Some(why);
            }
        }
        self.0.cancel.cancel();
    }
}
