//! Cleanups: runs, previews and requests.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, MAX_LIMIT, Operation, Refusal, Spec,
    Success, page_limit,
};
use crate::domain::{
    audit::{self, Action},
    cleanups::{self, BoardRules, CleanupRun, Preview, Walk},
    schedules::NIGHTLY_CLEANUP,
    timestamp,
};

const TAG: &str = "cleanup";

/// Lists past cleanups, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCleanupRuns {
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows what a cleanup would remove. Reads all expired rows, which can take some time.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewCleanup {
    /// Time of the cleanup. Default: now.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub at: Option<DateTime<Utc>>,
}

/// Runs the nightly cleanup now, on a worker.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCleanup {}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CleanupJob {
    pub job_id: i64,
    /// Of the job.
    pub state: String,
}

impl Operation for ListCleanupRuns {
    const SPEC: Spec = Spec::read("list_cleanup_runs", "/v1/cleanup/runs", "cleanup runs").tag(TAG);
    type Output = Listing<CleanupRun>;

    async fn run(self, call: &Call) -> Result<Listing<CleanupRun>, Refusal> {
        let limit = page_limit(self.limit)?;
        let mut runs = cleanups::list(&call.pool, self.cursor, limit + 1).await?;
        name_callers(call, &mut runs).await?;
        Ok(Listing::of(runs, limit, |run| run.id))
    }
}

/// Names the callers who asked for runs: for a cleanup, or for a run of the schedule. Only the audit log knows them.
async fn name_callers(call: &Call, runs: &mut [CleanupRun]) -> Result<(), Refusal> {
    let jobs: Vec<String> =
        runs.iter().filter_map(|run| run.job_id).map(|id| id.to_string()).collect();
    let nightly = [NIGHTLY_CLEANUP.to_owned()];
    let mut callers = HashMap::new();
    for (action, subjects) in [(Action::ScheduleRun, &nightly[..]), (Action::CleanupRun, &jobs[..])]
    {
        let filter = audit::Filter {
            action: Some(action.as_str()),
            subjects: Some(subjects),
            limit: MAX_LIMIT,
            ..audit::Filter::default()
        };
        for entry in audit::list(&call.pool, filter).await? {
            let job = entry.data["job_id"].as_i64().or_else(|| entry.subject.parse().ok());
            callers.insert(job, entry.author());
        }
    }
    for run in runs.iter_mut().filter(|run| run.job_id.is_some()) {
        run.requested_by = callers.get(&run.job_id).cloned();
    }
    Ok(())
}

impl Operation for PreviewCleanup {
    const SPEC: Spec = Spec::read("preview_cleanup", "/v1/cleanup/preview", "cleanup").tag(TAG);
    type Output = Preview;

    async fn run(self, call: &Call) -> Result<Preview, Refusal> {
        let mut transaction = call.begin_read().await?;
        let catalogue = call.catalogue()?;
        let rules = BoardRules::new(call.config.board, &catalogue);
        let walk =
            Walk::new(self.at.unwrap_or(call.now), &call.config.sessions, &call.config.memory);
        let walk = walk.archiving(rules);
        Ok(cleanups::preview(&mut transaction, walk).await?)
    }
}

impl Change for RunCleanup {
    const SPEC: Spec = Spec::change("run_cleanup", "/v1/cleanup/run", "cleanup")
        .tag(TAG)
        .answers(Success::Accepted);
    const ACTION: Action = Action::CleanupRun;
    type Output = CleanupJob;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<CleanupJob> {
        let job = cleanups::request(conn).await?;
        let output = CleanupJob { job_id: job.job_id, state: job.state };
        Ok(ChangeOutput::of(job.job_id, output, json!({})))
    }
}
