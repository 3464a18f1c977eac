//! Metrics of the nightly cleanup, for alerts.

use chrono::{DateTime, Utc};
use metrics::{counter, gauge};

use crate::{domain::cleanups::Batch, metric::Metric, queue::CLEANUP_ROWS_DELETED};

const LAST_SUCCESS: Metric = Metric::gauge(
    "dalsegno_nightly_cleanup_last_success_timestamp_seconds",
    &[],
    "Unix time in seconds of the last complete nightly cleanup on any host, read from the database; 0 before the first.",
);
const INSTALLED: Metric = Metric::gauge(
    "dalsegno_installation_created_timestamp_seconds",
    &[],
    "Unix time in seconds at which the database of this installation was created.",
);

/// The metrics of the nightly cleanup that only the scheduler publishes.
pub const METRICS: [Metric; 2] = [LAST_SUCCESS, INSTALLED];

const ROWS: &str = CLEANUP_ROWS_DELETED.name;

const TABLES: [&str; 10] = [
    "audit",
    "campaign_versions",
    "feed",
    "file_contents",
    "memory_items",
    "messages",
    "operation_keys",
    "session_summaries",
    "sessions",
    "webhook_deliveries",
];

/// Describes the counter and starts it at 0, in every process that may run a cleanup.
pub(in crate::jobs) fn begin_counts() {
    CLEANUP_ROWS_DELETED.describe();
    for table in TABLES {
        counter!(ROWS, "table" => table).increment(0);
    }
}

/// Describes the gauges, which the scheduler publishes.
pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
    // 0: no run has succeeded yet.
    gauge!(LAST_SUCCESS.name).set(0.0);
    // 0: not read from the database yet.
    gauge!(INSTALLED.name).set(0.0);
}

/// Publishes the time of the last success.
pub fn succeeded_at(at: DateTime<Utc>) {
    gauge!(LAST_SUCCESS.name).set(at.timestamp() as f64);
}

/// Publishes the creation time of the database.
pub fn installed_at(at: DateTime<Utc>) {
    gauge!(INSTALLED.name).set(at.timestamp() as f64);
}

pub(super) fn removed_audit(n_rows: i64) {
    counter!(ROWS, "table" => "audit").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_events(n_rows: i64) {
    counter!(ROWS, "table" => "feed").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_contents(n_rows: i64) {
    counter!(ROWS, "table" => "file_contents").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_memory(n_rows: i64) {
    counter!(ROWS, "table" => "memory_items").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_versions(n_rows: i64) {
    counter!(ROWS, "table" => "campaign_versions").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_summaries(n_rows: i64) {
    counter!(ROWS, "table" => "session_summaries").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_deliveries(n_rows: u64) {
    counter!(ROWS, "table" => "webhook_deliveries").increment(n_rows);
}

pub(super) fn removed_keys(n_rows: u64) {
    counter!(ROWS, "table" => "operation_keys").increment(n_rows);
}

pub(super) fn count_removed_sessions(batch: &Batch) {
    for (table, n_rows) in [("sessions", batch.sessions), ("messages", batch.messages)] {
        counter!(ROWS, "table" => table).increment(n_rows.unsigned_abs());
    }
}
