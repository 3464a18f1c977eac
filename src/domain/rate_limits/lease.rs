//! Leases of shares.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::RateLimit;
use crate::domain::StatementError;

/// The use of a limit by one worker since its last lease, and its next needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WantedShare {
    #[serde(flatten)]
    pub limit: RateLimit,
    /// The rest of the last share; negative if calls have used more. Unused for concurrent calls.
    pub returned: f64,
    /// Concurrent calls that run.
    pub in_use: f64,
    pub wanted: f64,
    /// Upper bound of what is left, if the provider has told one. Negative: a pause.
    pub at_most: Option<f64>,
}

/// A share that a worker has leased.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Lease {
    pub key: String,
    pub granted: f64,
    /// The rest of the limit, for the others.
    pub available: f64,
    /// True if tasks wait for the limit: workers get no shares of it until they are served.
    pub is_awaited: bool,
}

/// Takes back what a worker has not used, serves the waiting tasks of all workers, and leases new shares. `begun` are the tasks whose
/// grants its turns have taken.
pub async fn lease(
    executor: impl PgExecutor<'_>,
    worker: Uuid,
    wanted: &[WantedShare],
    begun: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Lease>, StatementError> {
    const ACTION: &str = "lease shares of rate limits";
    let leases = sqlx::query_scalar!(
        r#"select dalsegno.lease_rate_limits($1, $2, $3, $4) as "leases!""#,
        worker,
        json!(wanted),
        begun,
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to(ACTION))?;
    serde_json::from_value(leases).map_err(|error| StatementError {
        action: ACTION,
        source: sqlx::Error::Decode(error.into()),
    })
}

/// Wakes tasks whose limit no worker serves any more, and removes limits that are not in use. Returns the number of tasks.
pub async fn tend(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<i32, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.tend_rate_limits($1) as "n!""#, now)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("wake the tasks of rate limits that are not in use"))
}
