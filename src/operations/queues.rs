//! Queues and groups: their counters and their pauses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{Call, Change, ChangeOutput, ChangeResult, Operation, Refusal, Spec, by_request};
use crate::{
    domain::{
        audit::{self, Action},
        budgets,
        class::{BAD_ARGUMENT, BAD_VALUE, Class, NUL_IN_TEXT, UNKNOWN_QUEUE},
        explanations::describe_wait,
        rate_limits,
    },
    queue::admin::{self, PauseScope, QueueView, WaitCount, WaitReason},
};

const TAG: &str = "queue";
/// The queues of this service, which can be paused before the first worker starts.
const OWN_QUEUES: [&str; 2] = ["turns", "upkeep"];
const BAD_PAUSE: &[Class] = &[BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT];

/// Lists the queues with their counters.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQueues {}

/// All queues: there are a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Queues {
    pub items: Vec<QueueView>,
}

/// Shows one queue: one that has had a job, has a worker, or is paused.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowQueue {
    pub name: String,
}

/// Counts waiting jobs by the reason for which they wait. Reads the 10000 oldest live jobs only.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWaits {}

/// Waiting jobs by queue and reason.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = WaitingJobs)]
pub struct WaitCounts {
    pub items: Vec<WaitCount>,
    /// Tasks that wait for space in a budget; their jobs have the reason `condition`.
    #[serde(default)]
    pub waiting_for_budget: i64,
    /// Tasks that wait for a rate limit; their jobs have the reason `condition`, too.
    #[serde(default)]
    pub waiting_for_rate_limit: i64,
}

/// Pauses a queue: workers claim none of its jobs until it is resumed. Running jobs continue.
///
/// The queue has had a job, has a worker, or is one of the service's own.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseQueue {
    pub name: String,
    /// Shown with the queue while it is paused.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Ends the pause of a queue.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeQueue {
    pub name: String,
}

/// Pauses a group: workers claim none of its jobs until it is resumed. The tasks of a campaign are a group with its id as the name.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseGroup {
    pub name: String,
    /// Named in the explanation of each job that waits for the end of the pause.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Ends the pause of a group.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeGroup {
    pub name: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PauseOutcome {
    /// The name of the queue or the group.
    pub paused: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResumeOutcome {
    /// The name of the queue or the group.
    pub resumed: String,
    pub was_paused: bool,
}

impl Operation for ListQueues {
    const SPEC: Spec = Spec::read("list_queues", "/v1/queues", "queue ls").tag(TAG);
    type Output = Queues;

    async fn run(self, call: &Call) -> Result<Queues, Refusal> {
        Ok(Queues { items: admin::list_queues(&call.pool).await? })
    }
}

impl Operation for ShowQueue {
    const SPEC: Spec = Spec::read("show_queue", "/v1/queues/{name}", "queue show")
        .tag(TAG)
        .refuses(&[UNKNOWN_QUEUE]);
    type Output = QueueView;

    async fn run(self, call: &Call) -> Result<QueueView, Refusal> {
        Ok(admin::find_queue(&call.pool, &self.name).await?)
    }
}

impl Operation for ListWaits {
    const SPEC: Spec = Spec::read("list_waits", "/v1/waits", "queue waits").tag(TAG);
    type Output = WaitCounts;

    async fn run(self, call: &Call) -> Result<WaitCounts, Refusal> {
        let by_owner = budgets::count_waiting(&call.pool).await?;
        Ok(WaitCounts {
            items: admin::count_waits(&call.pool).await?,
            waiting_for_budget: by_owner.iter().map(|(_, tasks)| tasks).sum(),
            waiting_for_rate_limit: rate_limits::count_waiting(&call.pool).await?,
        })
    }
}

impl WaitCounts {
    /// Names what jobs wait for. The queue does not tell budgets from rate limits; the waits of their tasks do.
    pub fn describe(&self, reason: WaitReason) -> String {
        match (reason, self.waiting_for_budget, self.waiting_for_rate_limit) {
            (WaitReason::Condition, 1.., 0) => "space in a budget".to_owned(),
            (WaitReason::Condition, 0, 1..) => "a rate limit".to_owned(),
            (WaitReason::Condition, budget @ 1.., limit @ 1..) => {
                format!("space in a budget ({budget}) or a rate limit ({limit})")
            }
            _ => describe_wait(reason).to_owned(),
        }
    }
}

impl Change for PauseQueue {
    const SPEC: Spec = Spec::change("pause_queue", "/v1/queues/{name}/pause", "queue pause")
        .tag(TAG)
        .refuses(&[UNKNOWN_QUEUE, BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT]);
    const ACTION: Action = Action::QueuePause;
    type Output = PauseOutcome;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<PauseOutcome> {
        if !OWN_QUEUES.contains(&self.name.as_str()) {
            admin::find_queue(&mut *conn, &self.name).await?;
        }
        pause(conn, PauseScope::Queue, self.name, &self.reason).await
    }
}

impl Change for ResumeQueue {
    const SPEC: Spec = Spec::change("resume_queue", "/v1/queues/{name}/resume", "queue resume")
        .tag(TAG)
        .refuses(BAD_PAUSE);
    const ACTION: Action = Action::QueueResume;
    type Output = ResumeOutcome;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<ResumeOutcome> {
        resume(conn, PauseScope::Queue, self.name).await
    }
}

impl Change for PauseGroup {
    const SPEC: Spec = Spec::change("pause_group", "/v1/groups/{name}/pause", "queue pause")
        .tag(TAG)
        .refuses(BAD_PAUSE);
    const ACTION: Action = Action::GroupPause;
    type Output = PauseOutcome;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<PauseOutcome> {
        pause(conn, PauseScope::Group, self.name, &self.reason).await
    }
}

impl Change for ResumeGroup {
    const SPEC: Spec = Spec::change("resume_group", "/v1/groups/{name}/resume", "queue resume")
        .tag(TAG)
        .refuses(BAD_PAUSE);
    const ACTION: Action = Action::GroupResume;
    type Output = ResumeOutcome;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<ResumeOutcome> {
        resume(conn, PauseScope::Group, self.name).await
    }
}

/// Builds the data of the audit line of a pause, with the time by which its author is found.
pub(super) async fn pause_data(
    conn: &mut PgConnection,
    scope: PauseScope,
    name: &str,
    reason: &str,
) -> Result<Value, Refusal> {
    let found = admin::find_pause(conn, scope, name).await?;
    Ok(audit::pause_data(reason, found.map(|pause| pause.paused_at)))
}

async fn pause(
    conn: &mut PgConnection,
    scope: PauseScope,
    name: String,
    reason: &str,
) -> ChangeResult<PauseOutcome> {
    admin::pause(&mut *conn, scope, &name, reason).await?;
    let data = pause_data(conn, scope, &name, reason).await?;
    let output = PauseOutcome { paused: name.clone() };
    Ok(ChangeOutput::of(name, output, data))
}

async fn resume(
    conn: &mut PgConnection,
    scope: PauseScope,
    name: String,
) -> ChangeResult<ResumeOutcome> {
    let was_paused = admin::resume(conn, scope, &name).await?;
    let output = ResumeOutcome { resumed: name.clone(), was_paused };
    Ok(ChangeOutput::of(name, output, json!({ "was_paused": was_paused })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_condition_is_named_after_its_budget_or_its_rate_limit() {
        let words = |waiting_for_budget, waiting_for_rate_limit| {
            let items = Vec::new();
            let waits = WaitCounts { items, waiting_for_budget, waiting_for_rate_limit };
            waits.describe(WaitReason::Condition)
        };
        assert_eq!(words(2, 0), "space in a budget");
        assert_eq!(words(0, 3), "a rate limit");
        assert_eq!(words(2, 3), "space in a budget (2) or a rate limit (3)");
        assert_eq!(words(0, 0), "space in a budget or a rate limit");
    }
}
