//! The overview of an installation.

use serde::{Deserialize, Serialize};

use super::{Call, Operation, Refusal, Spec};
use crate::{
    domain::{
        attention::{self, Attention},
        tasks::{self, TaskLine, WaitMinute},
    },
    queue::admin::{self, RunMinute},
};

/// The queue of turns.
const TURNS: &str = "turns";
const MAX_RUNNING: i64 = 20;

/// Shows what waits for a person, what runs now, and the activity of the last hour.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowOverview {}

/// Open matters of a person, running tasks, and the last hour.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = InstallationOverview)]
pub struct Overview {
    /// The most urgent kind first; at most 20 of each kind.
    pub attention: Vec<Attention>,
    /// Running tasks, those that started last first; at most 20.
    pub running: Vec<TaskLine>,
    /// Runs of turns that have ended, by minute.
    pub runs: Vec<RunMinute>,
    /// The longest waits of tasks for their start, by the minute in which they were added.
    pub waits: Vec<WaitMinute>,
}

impl Operation for ShowOverview {
    const SPEC: Spec = Spec::read("show_overview", "/v1/overview", "overview").tag("queue");
    type Output = Overview;

    async fn run(self, call: &Call) -> Result<Overview, Refusal> {
        let mut transaction = call.begin_read().await?;
        let attention = attention::list(&mut transaction, call.now).await?;
        let jobs = admin::running_jobs(&mut *transaction, TURNS, MAX_RUNNING).await?;
        Ok(Overview {
            attention,
            running: tasks::of_jobs(&mut *transaction, &jobs).await?,
            runs: admin::runs_by_minute(&mut *transaction, TURNS).await?,
            waits: tasks::waits_by_minute(&mut *transaction).await?,
        })
    }
}
