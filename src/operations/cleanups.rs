//! Cleanups: runs, previews and requests.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    page_limit,
};
use crate::domain::{
    audit::Action,
    cleanups::{self, BoardRules, CleanupRun, Preview, Walk},
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
        let runs = cleanups::list(&call.pool, self.cursor, limit + 1).await?;
        Ok(Listing::of(runs, limit, |run| run.id))
    }
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

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<CleanupJob> {
        let job = cleanups::request(conn, &call.actor.label()).await?;
        let output = CleanupJob { job_id: job.job_id, state: job.state };
        Ok(ChangeOutput::of(job.job_id, output, json!({})))
    }
}
