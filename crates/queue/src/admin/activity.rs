//! Runs of the last hours, and those that run now.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::Error;

/// Runs that are read at most, so that a busy hour costs no more than a quiet one.
const MAX_RUNS: i64 = 10_000;

/// Ended runs of one step of a chart: a minute, if it shows one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunMinute {
    /// Age of the step: 0 is the one that ends now.
    pub minutes_ago: i32,
    /// Runs that were done.
    pub done: i64,
    /// Runs whose job is a dead letter.
    pub failed: i64,
}

/// Counts the runs of a queue that have ended within the last hours, in 60 steps. Steps without one are missing.
pub async fn runs_by_minute(
    executor: impl PgExecutor<'_>,
    queue: &str,
    hours: i32,
) -> Result<Vec<RunMinute>, Error> {
    sqlx::query_as!(
        RunMinute,
        r#"SELECT floor(extract(epoch FROM clock_timestamp() - r.ended_at) / (60 * $3))::integer * $3 AS "minutes_ago!",
                  count(*) FILTER (WHERE r.outcome = 'done') AS "done!", count(*) FILTER (WHERE r.outcome = 'failed') AS "failed!"
             FROM (SELECT ended_at, outcome FROM dalsegno.runs
                    WHERE queue = $1 AND ended_at > clock_timestamp() - make_interval(hours => $3)
                    ORDER BY ended_at DESC LIMIT $2) AS r
            GROUP BY 1 ORDER BY 1"#,
        queue,
        MAX_RUNS,
        hours,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("count the runs of the last hours"))
}

/// Lists the ids of running jobs of a queue, the oldest first.
pub async fn running_jobs(
    executor: impl PgExecutor<'_>,
    queue: &str,
    limit: i64,
) -> Result<Vec<i64>, Error> {
    sqlx::query_scalar!(
        "SELECT id FROM dalsegno.jobs WHERE state = 'running' AND queue = $1 ORDER BY id LIMIT $2",
        queue,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the running jobs"))
}
