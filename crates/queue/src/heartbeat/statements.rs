//! The statements of the heartbeat.

use uuid::Uuid;

use super::{
    super::link::{self, wait_for_answer},
    Heartbeat,
};
use dalsegno_base::causes::causes;

/// The answer to a renewal.
pub(super) struct RenewalAnswer {
    /// Leases that this worker no longer has.
    pub(super) lost: Vec<i64>,
    /// Leases whose jobs are to be cancelled.
    pub(super) cancelled: Vec<i64>,
    /// Seconds that a job that may only run alone has been ready.
    pub(super) alone_secs: Option<f64>,
    /// Number of workers that make room for it before this one.
    pub(super) n_ahead: i64,
}

impl Heartbeat {
    pub(super) async fn insert_worker(&mut self, worker_id: Uuid) -> Result<(), link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let slots = i32::try_from(self.slots.capacity()).unwrap_or(i32::MAX);
        let registered = sqlx::query_file!(
            "src/sql/worker_register.sql",
            worker_id,
            self.config.lease().as_secs_f64(),
            slots,
            &self.registration.queues,
            self.registration.host,
            self.registration.pid,
            self.registration.version,
            &self.registration.kinds,
        )
        .fetch_one(conn);
        let registered = wait_for_answer(patience, registered).await;
        self.link.check_answer(registered).map(drop)
    }

    pub(super) async fn renew(
        &mut self,
        worker_id: Uuid,
        job_ids: &[i64],
        leases: &[i64],
    ) -> Result<Option<RenewalAnswer>, link::Error> {
        let patience = self.link.patience();
        let lease_secs = self.config.lease().as_secs_f64();
        let conn = self.link.conn().await?;
        let renewed =
            sqlx::query_file!("src/sql/worker_renew.sql", worker_id, lease_secs, job_ids, leases)
                .map(|row| RenewalAnswer {
                    lost: row.lost,
                    cancelled: row.cancelled,
                    alone_secs: row.alone_secs,
                    n_ahead: row.n_ahead,
                })
                .fetch_optional(&mut *conn);
        let renewed = wait_for_answer(patience, renewed).await;
        self.link.check_answer(renewed)
    }

    pub(super) async fn clear_crash_marks(
        &mut self,
        interrupted: &[(i64, i64)],
    ) -> Result<(), link::Error> {
        if interrupted.is_empty() {
            return Ok(());
        }
        let (job_ids, leases): (Vec<i64>, Vec<i64>) = interrupted.iter().copied().unzip();
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let unmarked =
            sqlx::query_file!("src/sql/unmark_crashes.sql", &job_ids, &leases).fetch_all(conn);
        let unmarked = wait_for_answer(patience, unmarked).await;
        let unmarked = self.link.check_answer(unmarked)?;
        tracing::info!(n_jobs = unmarked.len(), "reset the crash counts of interrupted runs");
        Ok(())
    }

    pub(super) async fn report_draining(&mut self, worker_id: Uuid) -> Result<(), link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let said = wait_for_answer(
            patience,
            sqlx::query_file!("src/sql/worker_drain.sql", worker_id).execute(conn),
        )
        .await;
        self.link.check_answer(said).map(drop)
    }

    pub(super) async fn unregister(&mut self, worker_id: Uuid) {
        let patience = self.link.patience();
        let said = match self.link.conn().await {
            Ok(conn) => {
                let said = wait_for_answer(
                    patience,
                    sqlx::query_file!("src/sql/worker_stop.sql", worker_id).execute(conn),
                )
                .await;
                self.link.check_answer(said).map(drop)
            }
            Err(error) => Err(error),
        };
        // Without the sign-off, other workers notice when the lease is over. No job is running that they would have to take.
        if let Err(error) = said {
            tracing::warn!(error = causes(&error), "cannot sign off this worker");
        }
    }
}
