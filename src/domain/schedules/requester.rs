//! The caller who requested a job, in its headers. The worker that runs the job writes it into a record that outlives the job.

use serde_json::{Value, json};

/// The requester of the jobs that the scheduler enqueues.
pub const BY_SCHEDULE: &str = "schedule";

/// Returns the headers of a job. `requester`: the label of a caller, or [`BY_SCHEDULE`].
pub fn headers_with_requester(requester: &str) -> Value {
    json!({ "requested_by": requester })
}

/// Reads the requester from the headers of a job.
pub fn requester(headers: Option<&str>) -> Option<String> {
    let headers: Value = serde_json::from_str(headers?).ok()?;
    headers["requested_by"].as_str().map(str::to_owned)
}
