//! Periodic maintenance, run by every worker. It needs no leader, because each statement takes only rows that no other
//! transaction has locked.
//!
//! - Every second: due jobs become ready, and lanes get the promotions that they are owed.
//! - Every few seconds: jobs of lost workers are taken back. Less often, forgotten cancellations are carried out, and
//!   the counters are added up and published.
//! - Every minute: lanes are audited step by step.
//! - Every hour: rows older than their retention are deleted, in batches.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    config::Config,
    crash_points::{CrashPoint, CrashPoints},
    ends, jitter,
    link::{self, Link, wait_for_answer},
    retention::Retention,
    telemetry,
    wakeup::WakeSignals,
};
use dalsegno_base::causes::causes;

/// Limit of jobs or lanes that one statement moves.
const BATCH: i32 = 1_000;
/// Seconds that a job waits after its worker was lost; four times as long the second time.
const CRASH_BACKOFF_SECS: f64 = 2.0;

/// Searches for lost workers per lease; they come at most as often as promotions.
const RESCUES_PER_LEASE: u32 = 6;
const RESCUE_AT_LEAST_EVERY: Duration = Duration::from_secs(5);
const TIDY_EVERY: Duration = Duration::from_secs(15);
const AUDIT_EVERY: Duration = Duration::from_secs(60);

/// The task that does the maintenance.
pub(super) struct Upkeep {
    pub(super) link: Link,
    pub(super) bells: Arc<WakeSignals>,
    pub(super) config: Arc<Config>,
    pub(super) crash_points: CrashPoints,
    pub(super) identity: watch::Receiver<Option<Uuid>>,
    pub(super) retention: Retention,
    /// The queues whose state the metrics hold.
    pub(super) published: BTreeSet<String>,
}

/// The times at which each duty is due.
struct UpkeepSchedule {
    promote_at: Instant,
    rescue_at: Instant,
    tidy_at: Instant,
    audit_at: Instant,
    /// Id of the lane after which the audit continues.
    audited_to: i64,
}

impl Upkeep {
    /// Does the due duties until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let now = Instant::now();
        let mut diary = UpkeepSchedule {
            promote_at: now,
            rescue_at: now + self.rescue_pause(),
            tidy_at: now + jitter::jittered(TIDY_EVERY),
            audit_at: now + jitter::jittered(AUDIT_EVERY),
            audited_to: 0,
        };
        let mut n_failures = 0;
        while stop
            .run_until_cancelled(sleep_until(diary.next().min(self.retention.due_at())))
            .await
            .is_some()
        {
            match self.run_due_tasks(&mut diary).await {
                Ok(()) => n_failures = 0,
                Err(error) => {
                    n_failures += 1;
                    let wait = jitter::wait_after_failure(n_failures);
                    tracing::warn!(
                        error = causes(&error),
                        retry_in_ms = wait.as_millis(),
                        "upkeep of the queue failed, trying again"
                    );
                    diary.postpone(Instant::now() + wait);
                }
            }
        }
        self.link.close().await;
    }

    async fn run_due_tasks(&mut self, diary: &mut UpkeepSchedule) -> Result<(), link::Error> {
        let now = Instant::now();
        if now >= diary.promote_at {
            let next_in = self.promote().await?;
            diary.promote_at = now + next_in;
        }
        if now >= diary.rescue_at {
            self.rescue().await?;
            diary.rescue_at = now + self.rescue_pause();
        }
        if now >= diary.tidy_at {
            self.run_housekeeping().await?;
            diary.tidy_at = now + jitter::jittered(TIDY_EVERY);
        }
        if now >= diary.audit_at {
            diary.audited_to = self.audit(diary.audited_to).await?;
            diary.audit_at = now + jitter::jittered(AUDIT_EVERY);
        }
        self.retention.delete_if_due(&mut self.link).await
    }

    /// Makes due jobs ready and pays owed promotions. Returns the time until the next call.
    async fn promote(&mut self) -> Result<Duration, link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let promoted = sqlx::query_file!("src/sql/promote.sql", BATCH).fetch_one(conn);
        let promoted = wait_for_answer(patience, promoted).await;
        let promoted = self.link.check_answer(promoted)?;
        if promoted.moved > 0 || promoted.promoted > 0 {
            self.bells.work.notify_one();
        }
        if promoted.moved >= BATCH || promoted.promoted >= BATCH {
            return Ok(Duration::ZERO);
        }
        let usual = Duration::from_secs(self.config.upkeep_secs.into());
        let next_due = promoted
            .next_run_in_secs
            .map(|secs| Duration::from_secs_f64(secs.clamp(0.005, 3_600.0)));
        Ok(next_due.map_or(usual, |next| next.min(usual)))
    }

    /// Returns the time until the next search for lost workers. A short lease makes it short.
    fn rescue_pause(&self) -> Duration {
        let usual = Duration::from_secs(self.config.upkeep_secs.into());
        let share = self.config.lease() / RESCUES_PER_LEASE;
        jitter::jittered(share.max(usual).min(RESCUE_AT_LEAST_EVERY))
    }

    async fn rescue(&mut self) -> Result<(), link::Error> {
        let Some(worker_id) = *self.identity.borrow() else {
            return Ok(());
        };
        let patience = self.link.patience();
        let lease_secs = self.config.lease().as_secs_f64();
        let conn = self.link.conn().await?;
        let rescued = sqlx::query_file!(
            "src/sql/rescue.sql",
            worker_id,
            lease_secs,
            CRASH_BACKOFF_SECS,
            BATCH
        )
        .fetch_all(conn);
        let rescued = wait_for_answer(patience, rescued).await;
        let rescued = self.link.check_answer(rescued)?;
        if rescued.is_empty() {
            return Ok(());
        }
        self.crash_points.pass(CrashPoint::AfterRescue);
        for job in &rescued {
            telemetry::record_reclaim(&job.queue, &job.kind, &job.state);
            tracing::warn!(job.id = job.id, worker.id = %job.worker_id, state = job.state, "returned the job of a lost worker to the queue");
        }
        if rescued.iter().any(|job| job.lane_owed) {
            let conn = self.link.conn().await?;
            let swept = wait_for_answer(patience, ends::sweep_lanes(conn, BATCH)).await;
            self.link.check_answer(swept)?;
        }
        Ok(())
    }

    async fn run_housekeeping(&mut self) -> Result<(), link::Error> {
        const ROWS: i32 = 50_000;
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let applied = sqlx::query_file_scalar!("src/sql/cancel_sweep.sql", BATCH).fetch_one(conn);
        let applied = wait_for_answer(patience, applied).await;
        self.link.check_answer(applied)?;
        let conn = self.link.conn().await?;
        let rolled = sqlx::query_file_scalar!("src/sql/counters_roll_up.sql", ROWS).fetch_one(conn);
        let rolled = wait_for_answer(patience, rolled).await;
        self.link.check_answer(rolled)?;
        self.publish().await
    }

    /// Publishes the jobs of each queue as metrics.
    async fn publish(&mut self) -> Result<(), link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let queues =
            wait_for_answer(patience, sqlx::query_file!("src/sql/queue_list.sql").fetch_all(conn))
                .await;
        let queues = self.link.check_answer(queues)?;
        let named: BTreeSet<String> = queues.iter().map(|queue| queue.queue.clone()).collect();
        self.published.difference(&named).for_each(|queue| telemetry::reset_queue(queue));
        self.published = named;
        for queue in queues {
            let states = [
                ("ready", queue.ready),
                ("running", queue.running),
                ("scheduled", queue.scheduled),
                ("blocked", queue.blocked),
                ("held", queue.held),
            ];
            let oldest_secs = queue.oldest_ready_secs.unwrap_or(0.0);
            telemetry::set_queue_state(&queue.queue, states, oldest_secs, queue.workers);
        }
        Ok(())
    }

    /// Audits the next lanes. Returns the lane after which to continue.
    async fn audit(&mut self, after: i64) -> Result<i64, link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let audited = sqlx::query_file!("src/sql/lane_audit.sql", after, BATCH).fetch_one(conn);
        let audited = wait_for_answer(patience, audited).await;
        let audited = self.link.check_answer(audited)?;
        if audited.listed > 0 {
            tracing::warn!(
                n_lanes = audited.listed,
                "found lanes without a head; the next sweep promotes their next job"
            );
        }
        Ok(audited.last_lane.unwrap_or(0))
    }
}

impl UpkeepSchedule {
    fn next(&self) -> Instant {
        self.promote_at.min(self.rescue_at).min(self.tidy_at).min(self.audit_at)
    }

    fn postpone(&mut self, until: Instant) {
        for at in [&mut self.promote_at, &mut self.rescue_at, &mut self.tidy_at, &mut self.audit_at]
        {
            *at = (*at).max(until);
        }
    }
}
