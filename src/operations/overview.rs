//! The overview of an installation.

use serde::{Deserialize, Serialize};

use super::{Call, Operation, Refusal, Spec};
use crate::{
    domain::{
        attention::{self, Attention, AttentionList},
        class::Kind,
        tasks::{self, FailureTotals, TaskLine, WaitMinute},
    },
    queue::admin::{self, RunMinute},
};

/// The queue of turns.
const TURNS: &str = "turns";
const MAX_RUNNING: i64 = 20;
/// A week.
const MAX_HOURS: i32 = 168;

/// Shows what waits for a person, what runs now, and the activity of the last hours.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowOverview {
    /// Hours of activity, in 60 steps: a step has as many minutes as there are hours. Default: 1.
    #[schema(minimum = 1, maximum = 168)]
    pub hours: Option<i32>,
}

/// Open matters of a person, running tasks, and the last hours.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = InstallationOverview)]
pub struct Overview {
    /// The most urgent kind first; at most 20 of each kind. Of failed tasks the newest 20 groups with the same error or at the same budget, of each
    /// at most its newest 20 tasks, and in all at most 100.
    pub attention: Vec<Attention>,
    /// The failed tasks that were read for `attention`: at most the newest 1,000 of the last 7 days.
    #[serde(default)]
    pub failures: FailureTotals,
    /// Running tasks, those that started last first; at most 20.
    pub running: Vec<TaskLine>,
    /// Runs of turns that have ended, by step; the newest 10,000.
    pub runs: Vec<RunMinute>,
    /// True if older runs of these hours were not read: the numbers are lower bounds, and steps before the last one of `runs` are unknown.
    #[serde(default)]
    pub runs_are_cut: bool,
    /// The longest waits of tasks for their start, by the step in which they were added; the newest 5,000 tasks.
    pub waits: Vec<WaitMinute>,
    /// True if older tasks of these hours were not read, which may have waited longer.
    #[serde(default)]
    pub waits_are_cut: bool,
}

impl Operation for ShowOverview {
    const SPEC: Spec = Spec::read("show_overview", "/v1/overview", "overview").tag("queue");
    type Output = Overview;

    async fn run(self, call: &Call) -> Result<Overview, Refusal> {
        let hours = self.hours.unwrap_or(1);
        if !(1..=MAX_HOURS).contains(&hours) {
            let detail = format!("`hours` is {hours}, but must be from 1 to {MAX_HOURS}");
            return Err(Refusal::new(Kind::Malformed, "bad_query", detail));
        }
        let n_broken =
            call.catalogue().map_or_else(|broken| broken.0.len(), |it| it.problems().0.len());
        let mut transaction = call.begin_read().await?;
        let list = attention::list(&mut transaction, n_broken, call.now).await?;
        let AttentionList { items: attention, failures } = list;
        let jobs = admin::running_jobs(&mut *transaction, TURNS, MAX_RUNNING).await?;
        let running = tasks::of_jobs(&mut *transaction, &jobs).await?;
        let (runs, runs_are_cut) = admin::runs_by_minute(&mut *transaction, TURNS, hours).await?;
        let (waits, waits_are_cut) = tasks::waits_by_minute(&mut *transaction, hours).await?;
        Ok(Overview { attention, failures, running, runs, runs_are_cut, waits, waits_are_cut })
    }
}
