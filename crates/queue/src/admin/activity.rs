//! Runs of the last hour, and those that run now.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::Error;

/// Runs of all queues that are read at most, so that a busy hour costs no more than a quiet one.
const MAX_RUNS: i64 = 10_000;

/// Ended runs of one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunMinute {
    /// Age of the minute: 0 is the one that ends now, 59 the oldest.
    pub minutes_ago: i32,
    /// Runs that were done.
    pub done: i64,
    /// Runs whose job is a dead letter.
    pub failed: i64,
}

/// Counts the runs of a queue that have ended within the last hour, by minute. Minutes without one are missing.
pub async fn runs_by_minute(
    executor: impl PgExecutor<'_>,
    queue: &str,
) -> Result<Vec<RunMinute>, Error> {
    sqlx::query_as!(
        RunMinute,
        // `now()`, because an index is not searched for a moment that changes during the statement.
        r#"SELECT floor(extract(epoch FROM now() - r.ended_at) / 60)::integer AS "minutes_ago!",
                  count(*) FILTER (WHERE r.outcome = 'done') AS "done!", count(*) FILTER (WHERE r.outcome = 'failed') AS "failed!"
             FROM (SELECT queue, ended_at, outcome FROM dalsegno.runs
                    WHERE ended_at > now() - interval '1 hour' AND ended_at <= now()
                    ORDER BY ended_at DESC LIMIT $2) AS r
            WHERE r.queue = $1 GROUP BY 1 ORDER BY 1"#,
        queue,
        MAX_RUNS,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("count the runs of the last hour"))
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
