//! Worker processes, and the worker that runs a job.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::error::Error;

/// One incarnation of a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Worker)]
pub struct WorkerView {
    /// Made when it started; never used again.
    pub id: Uuid,
    /// The host of the process.
    pub host: String,
    /// Its process there.
    pub pid: i32,
    /// Queues that it serves.
    pub queues: Vec<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it stopped, or was declared lost.
    pub gone_at: Option<DateTime<Utc>>,
    /// `stopped` or `lost`.
    pub gone_reason: Option<String>,
}

/// Lists workers after the one of an id, the latest first; those that are gone stay for some days.
pub async fn list_workers(
    executor: impl PgExecutor<'_>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<WorkerView>, Error> {
    sqlx::query_as!(
        WorkerView,
        "SELECT id, host, pid, queues, started_at, gone_at, gone_reason FROM dalsegno.workers
          WHERE $1::uuid IS NULL
             OR (started_at, id) < (SELECT a.started_at, a.id FROM dalsegno.workers AS a WHERE a.id = $1)
          ORDER BY started_at DESC, id DESC LIMIT $2",
        after,
        limit
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the workers"))
}

/// Finds the worker that runs a job at this moment.
pub async fn holder(
    executor: impl PgExecutor<'_>,
    job_id: i64,
) -> Result<Option<WorkerView>, Error> {
    sqlx::query_as!(
        WorkerView,
        "SELECT w.id, w.host, w.pid, w.queues, w.started_at, w.gone_at, w.gone_reason
           FROM dalsegno.jobs AS j JOIN dalsegno.workers AS w ON w.id = j.worker_id
          WHERE j.id = $1 AND j.state = 'running'",
        job_id
    )
    .fetch_optional(executor)
    .await
    .map_err(Error::of("find the worker of a job"))
}
