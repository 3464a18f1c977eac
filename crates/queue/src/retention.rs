//! Deletes rows older than their retention, in small batches with a pause between them for other statements.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::{
    jitter,
    link::{self, Link, wait_for_answer},
    telemetry,
};

const EVERY: Duration = Duration::from_secs(3_600);
/// Pause between two batches.
const PAUSE: Duration = Duration::from_millis(200);
const BATCH: i32 = 2_000;
const DAY_SECS: f64 = 86_400.0;

/// Retention times, in days after the end of things.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// Records of attempts.
    pub runs_days: u32,
    /// Dead letters, which can be retried until then.
    pub dead_jobs_days: u32,
    /// Idempotency keys of ended jobs, and those of the service's own changes.
    pub idempotency_keys_days: u32,
    /// Empty lanes.
    pub empty_lanes_days: u32,
    /// Workers that are gone.
    pub workers_days: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            runs_days: 14,
            dead_jobs_days: 90,
            idempotency_keys_days: 30,
            empty_lanes_days: 30,
            workers_days: 7,
        }
    }
}

/// The hourly deletion, one batch at a time.
pub(super) struct Retention {
    keep: Keep,
    due_at: Instant,
    /// Index in [`TABLES`] of the table whose turn it is.
    table: usize,
}

pub(super) const TABLES: [&str; 5] = ["runs", "dead_jobs", "idempotency_keys", "lanes", "workers"];

impl Retention {
    pub(super) fn new(keep: Keep, now: Instant) -> Self {
        // Delayed, to leave the database to the first work after a restart of many workers.
        Self { keep, due_at: now + jitter::jittered(EVERY / 20), table: 0 }
    }

    pub(super) fn due_at(&self) -> Instant {
        self.due_at
    }

    /// Deletes one batch if it is due.
    pub(super) async fn delete_if_due(&mut self, link: &mut Link) -> Result<(), link::Error> {
        if Instant::now() < self.due_at {
            return Ok(());
        }
        // Put off first, so that a failure does not come back at once.
        self.due_at = Instant::now() + PAUSE;
        let n_deleted = self.delete_batch(link).await?;
        telemetry::record_deleted_rows(TABLES[self.table], n_deleted.unsigned_abs());
        if n_deleted < i64::from(BATCH) {
            self.table += 1;
        }
        if self.table == TABLES.len() {
            self.table = 0;
            self.due_at = Instant::now() + jitter::jittered(EVERY);
            telemetry::record_cleanup_success();
        }
        Ok(())
    }

    fn age_secs(&self) -> f64 {
        let keep = &self.keep;
        let days = match self.table {
            0 => keep.runs_days,
            1 => keep.dead_jobs_days,
            2 => keep.idempotency_keys_days,
            3 => keep.empty_lanes_days,
            _ => keep.workers_days,
        };
        f64::from(days) * DAY_SECS
    }

    async fn delete_batch(&self, link: &mut Link) -> Result<i64, link::Error> {
        let patience = link.patience();
        let conn = link.conn().await?;
        let age_secs = self.age_secs();
        let deleted = match self.table {
            0 => {
                wait_for_answer(
                    patience,
                    sqlx::query_file_scalar!("src/sql/delete_old_runs.sql", age_secs, BATCH)
                        .fetch_one(conn),
                )
                .await
            }
            1 => {
                wait_for_answer(
                    patience,
                    sqlx::query_file_scalar!("src/sql/delete_old_dead.sql", age_secs, BATCH)
                        .fetch_one(conn),
                )
                .await
            }
            2 => {
                wait_for_answer(
                    patience,
                    sqlx::query_file_scalar!("src/sql/delete_old_keys.sql", age_secs, BATCH)
                        .fetch_one(conn),
                )
                .await
            }
            3 => {
                wait_for_answer(
                    patience,
                    sqlx::query_file_scalar!("src/sql/delete_old_lanes.sql", age_secs, BATCH)
                        .fetch_one(conn),
                )
                .await
            }
            _ => {
                let deleted = sqlx::query_file_scalar!("src/sql/delete_old_workers.sql", age_secs)
                    .fetch_one(conn);
                wait_for_answer(patience, deleted).await
            }
        };
        link.check_answer(deleted)
    }
}
