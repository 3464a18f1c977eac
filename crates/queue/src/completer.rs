//! Writes the ends of runs, many in one statement.
//!
//! A commit costs one flush of the write-ahead log, however many rows it holds, so ends that come together are written
//! together. An end waits for others only while other jobs run; otherwise it is written at once. Several writers take
//! turns: one gathers while the others wait for the disk.
//!
//! Invariants:
//! - A slot is free only when its end is acknowledged, so an end that is not yet written counts as running.
//! - An end is written again until the database answers, always under its own lease. If the first write succeeded, or
//!   the job belongs to another worker by then, the repetition changes nothing.

use std::{sync::Arc, time::Duration};

use sqlx::Connection;
use tokio::{
    sync::{Mutex, mpsc},
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    config::Config,
    crash_points::{CrashPoint, CrashPoints},
    ends::{self, EndKind, WriteResult},
    jitter,
    link::{self, Link, wait_for_answer},
    slots::{Slot, Slots},
    telemetry,
    wakeup::WakeSignals,
};
use dalsegno_base::causes::causes;

/// Batch size below which more commits cost more than a longer wait saves.
const SMALL_BATCH: usize = 32;

/// A run that is over and whose end is to be written.
pub(super) struct RunEnd {
    pub(super) slot: Slot,
    pub(super) ending: EndKind,
}

/// The channel to which runs send their ends.
#[derive(Clone)]
pub(super) struct Ends {
    to_write: mpsc::UnboundedSender<RunEnd>,
    bells: Arc<WakeSignals>,
}

/// The ends that wait to be written. The writer that holds the lock gathers a batch.
pub(super) type EndsToWrite = Arc<Mutex<mpsc::UnboundedReceiver<RunEnd>>>;

/// One writer of ends.
pub(super) struct Completer {
    pub(super) link: Link,
    pub(super) slots: Arc<Slots>,
    pub(super) bells: Arc<WakeSignals>,
    pub(super) config: Arc<Config>,
    pub(super) crash_points: CrashPoints,
    /// Cancelled when the worker stops waiting for ends. Ends that are not written by then are left to the lease.
    pub(super) abandon: CancellationToken,
}

impl Ends {
    pub(super) fn channel(bells: Arc<WakeSignals>) -> (Self, EndsToWrite) {
        let (to_write, receiver) = mpsc::unbounded_channel();
        (Self { to_write, bells }, Arc::new(Mutex::new(receiver)))
    }

    pub(super) fn send(&self, ended: RunEnd) {
        match ended.ending {
            // There is nothing to write, so the slot is free now.
            EndKind::Committed { lane_owed: false, .. } | EndKind::LeaseLost => {
                telemetry::record_end(&ended.slot.run, ended.ending.outcomes(false));
                let in_lane = ended.slot.run.lane().is_some();
                drop(ended.slot);
                if in_lane {
                    self.bells.work.notify_one();
                }
            }
            // The writers outlive the last sender. If they are gone all the same, dropping the end frees the slot, and
            // the claimer's next recount gives the job back.
            _ if self.to_write.send(ended).is_err() => {
                tracing::error!("the writer of job results has stopped")
            }
            _ => {}
        }
    }
}

impl Completer {
    /// Writes ends until the last sender is gone and all are acknowledged. Can be called again after a panic.
    pub(super) async fn run(&mut self, waiting: &EndsToWrite) {
        // A panic leaves the connection in the middle of a statement.
        self.link.disconnect();
        let mut batch = Vec::with_capacity(self.config.end_batch_rows);
        while self.gather(waiting, &mut batch).await {
            let (done, others) = sort(&mut batch);
            self.write_done(done).await;
            self.write_others(others).await;
        }
    }

    /// Waits for ends, and a little longer for more of them while other jobs run. Returns false when the channel is
    /// closed.
    async fn gather(&self, waiting: &EndsToWrite, batch: &mut Vec<RunEnd>) -> bool {
        // A third of the slots: while one third is written, another is claimed and the last one runs.
        let third = usize::try_from(self.slots.capacity()).unwrap_or(usize::MAX).div_ceil(3);
        let limit = third.max(SMALL_BATCH).min(self.config.end_batch_rows);
        let mut waiting = waiting.lock().await;
        if waiting.recv_many(batch, limit).await == 0 {
            return false;
        }
        let until = Instant::now() + Duration::from_millis(self.config.end_linger_ms);
        while batch.len() < limit && self.slots.n_taken() > batch.len() {
            let room = limit - batch.len();
            match timeout_at(until, waiting.recv_many(batch, room)).await {
                Ok(n) if n > 0 => {}
                _ => break,
            }
        }
        true
    }

    async fn write_done(&mut self, slots: Vec<Slot>) {
        if slots.is_empty() {
            return;
        }
        let job_ids: Vec<i64> = slots.iter().map(|slot| slot.run.job_id()).collect();
        let leases: Vec<i64> = slots.iter().map(|slot| slot.run.lease()).collect();
        let mut n_failures = 0;
        let ended = loop {
            let began = Instant::now();
            match self.try_done(&job_ids, &leases).await {
                Ok(ended) => {
                    telemetry::record_ends_written(began.elapsed());
                    break ended;
                }
                Err(error) => {
                    if !self.wait_after(&error, slots.len(), &mut n_failures).await {
                        return;
                    }
                }
            }
        };
        self.crash_points.pass(CrashPoint::AfterCommit);
        telemetry::record_done(&slots, &ended);
        let any_owed = ended.iter().any(|(_, owed)| *owed);
        let any_lane = slots.iter().any(|slot| slot.run.lane().is_some());
        self.slots.free_all(slots.into_iter());
        self.promote_lanes(any_lane, any_owed).await;
    }

    async fn try_done(
        &mut self,
        job_ids: &[i64],
        leases: &[i64],
    ) -> Result<Vec<(i64, bool)>, link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let ended = wait_for_answer(patience, ends::finish_many(conn, job_ids, leases)).await;
        self.link.check_answer(ended)
    }

    /// Writes all ends other than `Done`: in one transaction first, and one by one if that fails. One end that the
    /// database refuses does not block the others.
    async fn write_others(&mut self, mut others: Vec<RunEnd>) {
        // All writers take rows in the same order, so they cannot deadlock.
        others.sort_by_key(|ended| ended.slot.run.job_id());
        let mut n_failures = 0;
        while !others.is_empty() {
            let together = if n_failures == 0 { others.len() } else { 1 };
            match self.try_others(&others[..together]).await {
                Ok(written) => {
                    self.crash_points.pass(CrashPoint::AfterCommit);
                    self.settle_others(others.drain(..together), &written).await;
                }
                Err(error) => {
                    others.rotate_left(1);
                    if !self.wait_after(&error, others.len(), &mut n_failures).await {
                        return;
                    }
                }
            }
        }
    }

    async fn try_others(&mut self, others: &[RunEnd]) -> Result<Vec<WriteResult>, link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let written = wait_for_answer(patience, async {
            let mut tx = conn.begin().await?;
            let mut written = Vec::with_capacity(others.len());
            for ended in others {
                written.push(ends::write(&mut tx, &ended.slot.run, &ended.ending).await?);
            }
            self.crash_points.pass(CrashPoint::AfterEndWriteBeforeCommit);
            tx.commit().await?;
            Ok(written)
        })
        .await;
        self.link.check_answer(written)
    }

    async fn settle_others(
        &mut self,
        others: impl Iterator<Item = RunEnd>,
        written: &[WriteResult],
    ) {
        let (mut any_lane, mut any_owed) = (false, false);
        let mut freed = Vec::with_capacity(written.len());
        for (ended, written) in others.zip(written) {
            let owed_before = matches!(ended.ending, EndKind::Committed { lane_owed: true, .. });
            // Jobs that step back into their lane are made ready by a sweep.
            let stepped_back = matches!(ended.ending, EndKind::GivenBack);
            any_lane |= ended.slot.run.lane().is_some();
            any_owed |= written.lane_owed
                || owed_before
                || (stepped_back && ended.slot.run.lane().is_some());
            match written.held {
                true => {
                    let outcomes = ended.ending.outcomes(written.holds_lane);
                    telemetry::record_end(&ended.slot.run, outcomes);
                }
                false => telemetry::ended_too_late(&ended.slot.run),
            }
            freed.push(ended.slot);
        }
        self.slots.free_all(freed.into_iter());
        self.promote_lanes(any_lane, any_owed).await;
    }

    /// Promotes owed lanes, and wakes the claimer if a lane may have a new head.
    async fn promote_lanes(&mut self, any_lane: bool, any_owed: bool) {
        if any_owed {
            let patience = self.link.patience();
            let swept = match self.link.conn().await {
                Ok(conn) => {
                    let swept = wait_for_answer(patience, ends::sweep_lanes(conn, 1_000)).await;
                    self.link.check_answer(swept)
                }
                Err(error) => Err(error),
            };
            // The debt is stored, and the sweep that runs every second pays it.
            if let Err(error) = swept {
                tracing::debug!(
                    error = causes(&error),
                    "cannot sweep lanes after the end of a job"
                );
            }
        }
        if any_lane {
            self.bells.work.notify_one();
        }
    }

    /// Waits before the next try. Returns false if the worker stops waiting for ends.
    async fn wait_after(&self, error: &link::Error, n_ends: usize, n_failures: &mut u32) -> bool {
        *n_failures += 1;
        let wait = jitter::wait_after_failure(*n_failures);
        tracing::warn!(
            error = causes(error),
            n_ends,
            retry_in_ms = wait.as_millis(),
            "cannot write job results, trying again"
        );
        self.abandon.run_until_cancelled(sleep(wait)).await.is_some()
    }
}

fn sort(batch: &mut Vec<RunEnd>) -> (Vec<Slot>, Vec<RunEnd>) {
    let (mut done, mut others) = (Vec::with_capacity(batch.len()), Vec::new());
    for ended in batch.drain(..) {
        match ended.ending {
            EndKind::Done => done.push(ended.slot),
            _ => others.push(ended),
        }
    }
    done.sort_by_key(|slot| slot.run.job_id());
    (done, others)
}
