//! The worker of a task's present or last run, as long as the queue keeps the run.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    cli::{server::Server, worker::activity_command},
    domain::tasks::Detail,
    operations::{ExplainJob, ShowJob},
};

/// The state of a job that a worker runs.
const RUNNING: &str = "running";

/// The worker of a run.
#[derive(Debug)]
pub(super) struct RunWorker {
    id: Uuid,
    host: Option<String>,
    pid: Option<i32>,
    /// The end of the run. `None`: it runs now.
    ended_at: Option<DateTime<Utc>>,
}

impl RunWorker {
    /// Loads the worker of the task's last run. `None`: no worker has run it, its runs were removed, or the caller may not see jobs.
    pub(super) async fn of_task(detail: &Detail, server: &Server) -> Option<Self> {
        // A retried task has a new job, which may not have run yet.
        let last_turn = detail.turns.last().map(|turn| turn.job_id);
        let jobs = [Some(detail.task.job_id), last_turn.filter(|job| *job != detail.task.job_id)];
        for job in jobs.into_iter().flatten() {
            if let Some(worker) = Self::of_job(job, server).await {
                return Some(worker);
            }
        }
        None
    }

    async fn of_job(id: i64, server: &Server) -> Option<Self> {
        let explanation = server.call(ExplainJob { id }).await.ok()?;
        if explanation.state == RUNNING
            && let Ok(detail) = server.call(ShowJob { id }).await
            && let Some(run) = detail.running
        {
            return Some(Self { id: run.worker_id, host: run.host, pid: run.pid, ended_at: None });
        }
        explanation.runs.into_iter().find_map(|run| {
            Some(Self {
                id: run.worker_id?,
                host: run.host,
                pid: run.pid,
                ended_at: Some(run.ended_at),
            })
        })
    }

    /// Names the worker, and the command that lists its runs at that time.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let (Some(host), Some(pid)) = (&self.host, self.pid) else {
            return vec![("worker", format!("{}, which is no longer kept", self.id))];
        };
        vec![
            ("worker", format!("{host} (pid {pid})")),
            ("its runs", format!("`{}`", activity_command(self.id, self.ended_at))),
        ]
    }
}
