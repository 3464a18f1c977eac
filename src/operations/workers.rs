//! Worker processes.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::{
    domain::{
        class::Kind,
        tasks::{self, TaskLine},
        timestamp, turns,
    },
    queue::admin::{self, ActivitySpan, WorkerLoad, WorkerRun, WorkerView},
};

const DEFAULT_MINUTES: i64 = 20;
const MAX_MINUTES: i64 = 60;
const MAX_WORKERS: i64 = 50;
const MAX_RUNS: i64 = 500;

/// Lists worker processes, the newest first. Ended ones are listed for queue.keep.workers_days.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWorkers {
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows what workers run now, and what they ran in the last minutes.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowWorkerActivity {
    /// 20, if they are left out.
    #[schema(minimum = 1, maximum = 60)]
    pub minutes: Option<i64>,
    /// Looks back from this moment. Without it, from now.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub until: Option<DateTime<Utc>>,
    /// Only this worker. The output then has the tasks of its runs.
    pub worker_id: Option<Uuid>,
}

/// Workers with their runs, over the last minutes.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorkerActivity {
    pub since: DateTime<Utc>,
    /// Live workers first, those that started last first; at most 50.
    pub workers: Vec<WorkerLoad>,
    /// Running ones first; at most 500, and at most 500 that have ended.
    pub runs: Vec<WorkerRun>,
    /// The tasks of the runs of one worker, by the job of the run: also those that were retried as another job since, if the run had a turn
    /// or was the first one.
    #[serde(default)]
    pub tasks: Vec<TaskLine>,
}

impl Operation for ListWorkers {
    const SPEC: Spec = Spec::read("list_workers", "/v1/workers", "worker ls").tag("queue");
    type Output = Listing<WorkerView>;

    async fn run(self, call: &Call) -> Result<Listing<WorkerView>, Refusal> {
        let limit = page_limit(self.limit)?;
        let workers = admin::list_workers(&call.pool, self.cursor, limit + 1).await?;
        Ok(Listing::of(workers, limit, |worker| worker.id))
    }
}

impl Operation for ShowWorkerActivity {
    const SPEC: Spec =
        Spec::read("show_worker_activity", "/v1/workers/activity", "worker activity").tag("queue");
    type Output = WorkerActivity;

    async fn run(self, call: &Call) -> Result<WorkerActivity, Refusal> {
        let minutes = self.minutes.unwrap_or(DEFAULT_MINUTES);
        if !(1..=MAX_MINUTES).contains(&minutes) {
            let detail = format!("minutes is {minutes}, but must be from 1 to {MAX_MINUTES}");
            return Err(Refusal::new(Kind::Malformed, "bad_query", detail));
        }
        let until = self.until;
        let since = until.unwrap_or(call.now) - TimeDelta::minutes(minutes);
        let span = ActivitySpan { since, until };
        let mut transaction = call.begin_read().await?;
        let conn = &mut *transaction;
        let workers = admin::worker_loads(&mut *conn, span, self.worker_id, MAX_WORKERS).await?;
        let ids: Vec<Uuid> = workers.iter().map(|worker| worker.id).collect();
        let runs = admin::worker_runs(&mut *conn, &ids, span, MAX_RUNS).await?;
        let tasks = match self.worker_id {
            Some(_) => tasks_of(conn, &runs).await?,
            None => Vec::new(),
        };
        Ok(WorkerActivity { since, workers, runs, tasks })
    }
}

/// Finds the tasks of runs, also by jobs that were followed by others when the task was retried.
async fn tasks_of(conn: &mut PgConnection, runs: &[WorkerRun]) -> Result<Vec<TaskLine>, Refusal> {
    let jobs: Vec<i64> = runs.iter().map(|run| run.job_id).collect();
    let (Some(oldest), Some(newest)) = (jobs.iter().min(), jobs.iter().max()) else {
        return Ok(Vec::new());
    };
    let retried = tasks::retried_between(&mut *conn, *oldest, *newest).await?;
    let earlier = turns::jobs_of_tasks(&mut *conn, &retried, &jobs).await?;
    Ok(tasks::of_runs(&mut *conn, &jobs, &earlier).await?)
}
