//! Metrics of the nightly cleanup, for alerts.

use chrono::{DateTime, Utc};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use crate::domain::cleanups::Batch;

const LAST_SUCCESS: &str = "dalsegno_cleanup_last_success_timestamp_seconds";
const INSTALLED: &str = "dalsegno_installation_created_timestamp_seconds";
const ROWS: &str = "dalsegno_cleanup_rows_total";

const TABLES: [&str; 7] = [
    "feed",
    "memory_items",
    "messages",
    "operation_keys",
    "session_summaries",
    "sessions",
    "webhook_deliveries",
];

/// Describes the counters and starts them at 0, in every process that may run a cleanup.
pub(in crate::jobs) fn begin_counts() {
    describe_counter!(ROWS, "Rows that the nightly cleanup removed in this process, by table.");
    for table in TABLES {
        counter!(ROWS, "table" => table).increment(0);
    }
}

/// Describes the gauges, which the scheduler publishes.
pub fn describe() {
    describe_gauge!(
        LAST_SUCCESS,
        Unit::Seconds,
        "Time of the last complete nightly cleanup, on any host."
    );
    describe_gauge!(
        INSTALLED,
        Unit::Seconds,
        "When the database of this installation was made. An alert compares it with a cleanup that has never gone through."
    );
    // 0: no run has succeeded yet.
    gauge!(LAST_SUCCESS).set(0.0);
    // 0: not read from the database yet.
    gauge!(INSTALLED).set(0.0);
}

/// Publishes the time of the last success.
pub fn succeeded_at(at: DateTime<Utc>) {
    gauge!(LAST_SUCCESS).set(at.timestamp() as f64);
}

/// Publishes the creation time of the database.
pub fn installed_at(at: DateTime<Utc>) {
    gauge!(INSTALLED).set(at.timestamp() as f64);
}

pub(super) fn removed_events(n_rows: i64) {
    counter!(ROWS, "table" => "feed").increment(n_rows.unsigned_abs());
}

pub(super) fn removed_memory(n_rows: i64) {
    counter!(ROWS, "table" => "memory_items").increment(n_rows.unsigned_abs());
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
