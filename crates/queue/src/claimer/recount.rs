//! Gives back jobs that run according to the database but not in this process.
//!
//! They come from claims whose answer was lost, and from runs that were stopped at the fence although the lease was
//! still valid. The heartbeat would keep them alive for ever. Only the claimer can count, because it alone knows that none of its
//! own claims is in flight. A statement whose connection broke can still commit until the server's time limit, so the
//! claimer counts several times after each failure.
//!
//! A claim may also be answered after the fence has stopped all runs. Its jobs never start, and are given back at once.

use std::{sync::atomic::Ordering, time::Duration};

use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    super::{
        ends,
        link::{self, wait_for_answer},
        slots::Claim,
    },
    Claimer,
    state::ClaimerState,
};

/// Number of counts after a failed claim. With [`COUNT_AGAIN_AFTER`], the last one comes after the server's statement
/// timeout.
const COUNTS_AFTER_FAILURE: u32 = 4;
const COUNT_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Interval of the counts without a failure.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// The time of the next count.
pub(super) struct Recount {
    n_left: u32,
    at: Instant,
}

impl Recount {
    pub(super) fn new(now: Instant) -> Self {
        Self { n_left: 0, at: now + COUNT_EVERY }
    }

    pub(super) fn due_at(&self) -> Instant {
        self.at
    }

    pub(super) fn record_failure(&mut self) {
        self.n_left = COUNTS_AFTER_FAILURE;
        self.at = Instant::now();
    }

    fn record_count(&mut self) {
        self.n_left = self.n_left.saturating_sub(1);
        self.at = Instant::now() + if self.n_left > 0 { COUNT_AGAIN_AFTER } else { COUNT_EVERY };
    }
}

impl Claimer {
    pub(super) async fn recount_if_due(
        &mut self,
        worker_id: Uuid,
        memory: &mut ClaimerState,
    ) -> Result<(), link::Error> {
        if self.bells.recount.swap(false, Ordering::Relaxed) {
            memory.recount.record_failure();
        }
        if Instant::now() < memory.recount.at {
            return Ok(());
        }
        let n_found = self.release_unknown_runs(worker_id).await?;
        memory.recount.record_count();
        if n_found > 0 {
            tracing::warn!(
                n_jobs = n_found,
                "returned claimed jobs to the queue, because the answer to the claim or a renewal of the lease was lost"
            );
        }
        Ok(())
    }

    async fn release_unknown_runs(&mut self, worker_id: Uuid) -> Result<usize, link::Error> {
        // A run leaves this list only when its end is acknowledged, so a job that is missing here is truly unknown.
        let known: Vec<i64> = self.slots.running().iter().map(|run| run.lease()).collect();
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let given_back = wait_for_answer(patience, async {
            let strangers = sqlx::query_file!("src/sql/unknown_runs.sql", worker_id, &known)
                .fetch_all(&mut *conn)
                .await?;
            let (job_ids, leases): (Vec<i64>, Vec<i64>) =
                strangers.into_iter().map(|row| (row.id, row.lease)).unzip();
            give_back(&mut *conn, &job_ids, &leases, "its worker does not run it: the answer to its claim or a renewal of its lease was lost")
                .await
        })
        .await;
        self.link.check_answer(given_back)
    }

    /// Gives back the jobs of a claim that was answered after the fence. If that fails, a later count or the end of the
    /// lease returns them.
    pub(super) async fn give_back_late(&mut self, claims: Vec<Claim>) -> Result<(), link::Error> {
        let (job_ids, leases): (Vec<i64>, Vec<i64>) =
            claims.iter().map(|claim| (claim.run.job_id(), claim.run.lease())).unzip();
        // Frees the slots.
        drop(claims);
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let reason = "its claim was answered after its worker had lost the lease or was about to";
        let given_back =
            wait_for_answer(patience, give_back(conn, &job_ids, &leases, reason)).await;
        let n_given_back = self.link.check_answer(given_back)?;
        tracing::warn!(
            n_jobs = n_given_back,
            "returned claimed jobs to the queue, because their claim was answered after all runs were stopped"
        );
        Ok(())
    }
}

/// Gives jobs back, and promotes their lanes. Returns the number of jobs whose lease was valid.
async fn give_back(
    conn: &mut PgConnection,
    job_ids: &[i64],
    leases: &[i64],
    reason: &str,
) -> Result<usize, sqlx::Error> {
    if job_ids.is_empty() {
        return Ok(0);
    }
    let back = ends::give_back(&mut *conn, job_ids, leases, reason).await?;
    if back.contains(&true) {
        ends::sweep_lanes(&mut *conn, 1_000).await?;
    }
    Ok(back.len())
}
