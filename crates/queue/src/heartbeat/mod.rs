//! Renews the lease, and learns what the database has decided about the runs.
//!
//! The heartbeat has a connection of its own and is the last part to stop: a drain of many minutes renews to its end.
//! Without notifications, a worker learns of lost leases and cancellations from it.
//!
//! **The fence.** A worker that cannot renew must stop, because another worker starts the same jobs when the lease is
//! over. It counts from the moment *before* the last successful renewal was sent, on its own monotonic clock. So it
//! never believes in its lease longer than the database does. With `lease_margin_secs` to go it stops all runs and
//! claims no more. The database would refuse their writes anyway; the margin is for effects elsewhere.
//!
//! **Coming back.** If the database still has the worker as live, the id stays, and the claimer's recount gives back
//! the stopped jobs. If it was declared lost, the process registers under a new id. It removes the crash marks of runs
//! that it had stopped in time, because they did not crash. Marks stay if the process stood still until its lease was
//! over: one of the runs may be the cause.

mod statements;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::statements::RenewalAnswer;
use super::{
    config::Config,
    crash_points::{CrashPoint, CrashPoints},
    jitter,
    link::{self, Link},
    run::{Run, Stop},
    slots::Slots,
    telemetry,
    wakeup::{RunAloneJob, WakeSignals},
};
use dalsegno_base::causes::causes;

/// Shortest time between two heartbeats for cancellations.
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// Interval of the questions for cancellations while notifications do not arrive.
const CANCEL_POLL: Duration = Duration::from_millis(500);

/// The description of the process in its row in the database.
#[derive(Debug, Clone)]
pub(super) struct Registration {
    pub(super) queues: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) host: String,
    pub(super) pid: i32,
    pub(super) version: String,
}

/// The task that renews the lease.
pub(super) struct Heartbeat {
    pub(super) link: Link,
    pub(super) slots: Arc<Slots>,
    pub(super) bells: Arc<WakeSignals>,
    pub(super) config: Arc<Config>,
    pub(super) crash_points: CrashPoints,
    pub(super) registration: Registration,
    pub(super) identity: watch::Sender<Option<Uuid>>,
}

/// The state of a registration between two heartbeats.
struct Lease {
    worker_id: Uuid,
    /// Moment at which the runs have to stop unless the lease is renewed before.
    fence_at: Instant,
    fenced: bool,
    /// Runs that were stopped at the fence in time, as (job, lease).
    interrupted: Vec<(i64, i64)>,
    /// Such runs of earlier registrations, which were declared lost. Their crash marks are not removed yet.
    marked: Vec<(i64, i64)>,
    n_failures: u32,
}

impl Lease {
    /// Records the fence, and the runs that it stops.
    fn fence(&mut self, now: Instant, margin: Duration, running: &[(i64, i64)]) {
        self.fenced = true;
        if now < self.fence_at + margin {
            self.interrupted.extend(running);
        }
    }
}

impl Heartbeat {
    /// Registers and renews until `stop`, which comes after all runs have ended; then signs the worker off.
    pub(super) async fn run(mut self, stop: CancellationToken, draining: CancellationToken) {
        let Some(mut lease) = stop.run_until_cancelled(self.register_with_retries()).await else {
            return;
        };
        // Id under which the worker has announced its drain. A new registration during the drain announces it again.
        let mut draining_as = None;
        let mut saw_drain = false;
        loop {
            if draining.is_cancelled() {
                saw_drain = true;
                if draining_as != Some(lease.worker_id) && self.announce_drain(&lease).await {
                    draining_as = Some(lease.worker_id);
                }
            }
            let beat = async {
                let pause = if lease.n_failures > 0 {
                    jitter::wait_after_failure(lease.n_failures).min(self.config.heartbeat())
                } else {
                    self.config.heartbeat()
                };
                tokio::select! {
                    () = sleep(pause) => {}
                    () = self.bells.cancel.notified() => sleep(CANCEL_PAUSE).await,
                    () = self.wait_for_cancel_poll() => {}
                    () = sleep_until(lease.fence_at), if !lease.fenced => {}
                    // Wakes once. If the database was away then, the next beat announces the drain.
                    () = draining.cancelled(), if !saw_drain => {}
                }
            };
            if stop.run_until_cancelled(beat).await.is_none() {
                break;
            }
            self.fence_if_due(&mut lease);
            self.send_heartbeat(&mut lease).await;
        }
        self.unregister(lease.worker_id).await;
        self.link.close().await;
    }

    /// Waits until the worker should ask for cancellations. Without notifications it learns of a cancellation only by
    /// asking, and has to learn of it within a second. The conditions are read each time, because runs start while this
    /// waits.
    async fn wait_for_cancel_poll(&self) {
        loop {
            sleep(CANCEL_POLL).await;
            if !self.bells.notices.is_hearing() && self.slots.n_taken() > 0 {
                return;
            }
        }
    }

    async fn register_with_retries(&mut self) -> Lease {
        let mut n_failures = 0;
        loop {
            match self.register().await {
                Ok(lease) => return lease,
                Err(error) => {
                    n_failures += 1;
                    let wait = jitter::wait_after_failure(n_failures);
                    tracing::warn!(
                        error = causes(&error),
                        retry_in_ms = wait.as_millis(),
                        "cannot register this worker, trying again"
                    );
                    sleep(wait).await;
                }
            }
        }
    }

    async fn register(&mut self) -> Result<Lease, link::Error> {
        // A new id each time: an id that was declared lost stays lost.
        let worker_id = Uuid::new_v4();
        let sent = Instant::now();
        self.insert_worker(worker_id).await?;
        tracing::info!(worker.id = %worker_id, slots = self.slots.capacity(), "worker registered");
        self.identity.send_replace(Some(worker_id));
        Ok(Lease {
            worker_id,
            fence_at: self.fence_after(sent),
            fenced: false,
            interrupted: Vec::new(),
            marked: Vec::new(),
            n_failures: 0,
        })
    }

    fn fence_after(&self, sent: Instant) -> Instant {
        sent + self.config.lease().saturating_sub(self.config.lease_margin())
    }

    /// Stops all runs if the lease could not be renewed in time.
    fn fence_if_due(&self, lease: &mut Lease) {
        let now = Instant::now();
        if lease.fenced || now < lease.fence_at {
            return;
        }
        self.identity.send_replace(None);
        let running = self.slots.running();
        tracing::error!(
            n_runs = running.len(),
            "cannot renew the lease: stopping all runs before it ends"
        );
        let ids: Vec<_> = running.iter().map(|run| (run.job_id(), run.lease())).collect();
        lease.fence(now, self.config.lease_margin(), &ids);
        for run in running {
            run.stop(Stop::LeaseLost);
        }
    }

    async fn send_heartbeat(&mut self, lease: &mut Lease) {
        let running = self.slots.running();
        let sent = Instant::now();
        let renewal = async {
            let (job_ids, leases): (Vec<i64>, Vec<i64>) =
                running.iter().map(|run| (run.job_id(), run.lease())).unzip();
            self.renew(lease.worker_id, &job_ids, &leases).await
        };
        // Before the fence, the wait for an answer must end at the fence.
        let answered = if lease.fenced {
            renewal.await
        } else {
            match timeout_at(lease.fence_at, renewal).await {
                Ok(answered) => answered,
                Err(_) => {
                    self.link.disconnect();
                    Err(link::Error::NoAnswer(sent.elapsed()))
                }
            }
        };
        match answered {
            Ok(Some(renewed)) => {
                self.apply_renewal(lease, sent, &renewed, &running);
                self.remove_crash_marks(lease).await;
            }
            Ok(None) => self.declared_lost(lease).await,
            Err(error) => {
                lease.n_failures += 1;
                tracing::warn!(
                    error = causes(&error),
                    fence_in_ms =
                        lease.fence_at.saturating_duration_since(Instant::now()).as_millis(),
                    "cannot renew the lease, trying again"
                );
                self.fence_if_due(lease);
            }
        }
    }

    fn apply_renewal(
        &self,
        lease: &mut Lease,
        sent: Instant,
        renewed: &RenewalAnswer,
        running: &[Run],
    ) {
        if !running.is_empty() {
            self.crash_points.pass(CrashPoint::AfterRenew);
        }
        telemetry::record_renewal(
            (lease.fence_at + self.config.lease_margin()).saturating_duration_since(sent),
        );
        lease.n_failures = 0;
        lease.fence_at = self.fence_after(sent);
        if std::mem::take(&mut lease.fenced) {
            tracing::info!("renewed the lease: claiming jobs again");
            lease.interrupted.clear();
            self.bells.recount.store(true, Ordering::Relaxed);
            // The claimer may be asleep until its next poll.
            self.bells.work.notify_one();
            self.identity.send_replace(Some(lease.worker_id));
        }
        let ready_secs = renewed.alone_secs.map_or(0.0, |secs| secs.clamp(1.0, 1e6)) as u32;
        let n_ahead = u32::try_from(renewed.n_ahead).unwrap_or(u32::MAX);
        self.bells.run_alone.send_replace(RunAloneJob { ready_secs, n_ahead });
        if ready_secs > 0 {
            self.bells.work.notify_one();
        }
        for run in running {
            if renewed.lost.contains(&run.lease()) {
                self.stop_if_still_running(run, Stop::LeaseLost);
            } else if renewed.cancelled.contains(&run.lease()) {
                self.stop_if_still_running(run, Stop::Cancelled);
            }
        }
    }

    /// Stops a run unless it has ended or is ending. A run whose end was written while the renewal was in flight is
    /// reported as lost, but it is not. Its slot may be taken a moment longer than that.
    fn stop_if_still_running(&self, run: &Run, why: Stop) {
        let is_there =
            self.slots.find(run.job_id()).is_some_and(|current| current.lease() == run.lease());
        if is_there && !run.is_ending() {
            tracing::info!(job.id = run.job_id(), ?why, "stopping a run");
            run.stop(why);
        }
    }

    async fn declared_lost(&mut self, lease: &mut Lease) {
        // Runs that continue until now were not stopped in time: their crash marks stay.
        self.identity.send_replace(None);
        for run in self.slots.running() {
            run.stop(Stop::LeaseLost);
        }
        tracing::error!(worker.id = %lease.worker_id, "another worker declared this one lost: registering again");
        let mut marked = std::mem::take(&mut lease.marked);
        marked.append(&mut lease.interrupted);
        *lease = self.register_with_retries().await;
        lease.marked = marked;
        self.remove_crash_marks(lease).await;
    }

    /// Announces the drain, unless the last renewal has failed: then only the next renewal matters. Returns true if the database
    /// has answered. Each heartbeat tries it until then.
    async fn announce_drain(&mut self, lease: &Lease) -> bool {
        if lease.n_failures > 0 {
            return false;
        }
        let until = self.side_deadline(lease);
        match timeout_at(until, self.report_draining(lease.worker_id)).await {
            Ok(announced) => announced.is_ok(),
            Err(_) => {
                self.link.disconnect();
                false
            }
        }
    }

    /// Removes the crash marks of runs that were stopped in time. Each heartbeat tries it until the database answers.
    async fn remove_crash_marks(&mut self, lease: &mut Lease) {
        let (sent, until) = (Instant::now(), self.side_deadline(lease));
        let cleared = match timeout_at(until, self.clear_crash_marks(&lease.marked)).await {
            Ok(cleared) => cleared,
            Err(_) => {
                self.link.disconnect();
                Err(link::Error::NoAnswer(sent.elapsed()))
            }
        };
        match cleared {
            Ok(()) => lease.marked.clear(),
            Err(error) => tracing::warn!(
                error = causes(&error),
                "cannot reset the crash counts of interrupted runs, trying again"
            ),
        }
    }

    /// Returns the moment at which a statement beside the renewal is given up. A slow answer must delay neither the next renewal
    /// nor the fence.
    fn side_deadline(&self, lease: &Lease) -> Instant {
        (Instant::now() + self.config.heartbeat() / 2).min(lease.fence_at)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use sqlx::postgres::PgConnectOptions;

    use super::*;

    fn lease(fence_at: Instant) -> Lease {
        Lease {
            worker_id: Uuid::nil(),
            fence_at,
            fenced: false,
            interrupted: Vec::new(),
            marked: Vec::new(),
            n_failures: 0,
        }
    }

    #[test]
    fn only_runs_that_are_stopped_before_the_end_of_the_lease_count_as_interrupted() {
        let (fence_at, margin) = (Instant::now(), Duration::from_secs(10));
        let interrupted_after = |secs| {
            let mut lease = lease(fence_at);
            lease.fence(fence_at + Duration::from_secs(secs), margin, &[(7, 1)]);
            assert!(lease.fenced);
            lease.interrupted
        };
        assert_eq!(interrupted_after(9), [(7, 1)]);
        assert!(interrupted_after(10).is_empty(), "another worker may have started the job");
    }

    /// Builds the heartbeat of a worker whose database accepts connections and answers nothing.
    fn unanswered(silent: &TcpListener) -> Heartbeat {
        let port = silent.local_addr().unwrap().port();
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port);
        Heartbeat {
            link: Link::new(options, Duration::from_secs(3600), false),
            slots: Arc::new(Slots::new(1)),
            bells: Arc::default(),
            config: Arc::default(),
            crash_points: CrashPoints::default(),
            registration: Registration {
                queues: Vec::new(),
                kinds: Vec::new(),
                host: "here".to_owned(),
                pid: 1,
                version: "1".to_owned(),
            },
            identity: watch::Sender::new(None),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_announcement_of_a_drain_delays_neither_the_next_renewal_nor_the_fence() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut heartbeat = unanswered(&silent);
        let secs = Duration::from_secs;
        for (fence_in, n_failures, longest) in [(20, 0, secs(3)), (1, 0, secs(1)), (20, 1, secs(0))]
        {
            let began = Instant::now();
            let lease = Lease { n_failures, ..lease(began + secs(fence_in)) };
            assert!(!heartbeat.announce_drain(&lease).await);
            // The timer counts whole milliseconds, and rounds up.
            let took = began.elapsed();
            assert!(
                took <= longest + Duration::from_millis(2),
                "{fence_in} {n_failures}: {took:?}"
            );
        }
    }
}
