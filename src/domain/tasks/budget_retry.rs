//! Retries of tasks that failed at a budget: whether the budget allows the call by now.

use std::collections::{HashMap, hash_map::Entry};

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{Error, ExplainedColumns, State, Task, explained_columns, get, of_jobs, retry_command};
use crate::domain::{
    Amount,
    amount::{Owner, Refusal},
    budgets::{self, OwnedBudget, OwnerKind},
    campaigns::{self, Status},
    text::count,
};

/// Result of a retry of a task that failed at a budget, as far as it is known before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOutlook {
    /// The budget would refuse the call again, and the task would fail.
    Refusal(Refusal),
    /// The task would wait until the budget has space.
    Wait(Refusal),
    /// The call fits by now.
    Space,
    /// A step of a flow that failed at its own budget. The budget comes from the agent's file, and only a retry of the flow reads it again.
    AgentFile { flow_id: Uuid, step: String },
    /// Nothing is known, because the campaign is closed.
    Unknown,
}

/// A task that failed at a budget and whose call the budget still does not allow: a retry would fail again, or wait. Or a step, which only its
/// flow retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefusedRetry {
    pub task_id: Uuid,
    /// The task would wait for space in the budget, and not fail.
    #[serde(default)]
    pub waits: bool,
    /// The present amounts of the budget. Of a step, the reason for the retry of its flow.
    pub because: String,
    /// The budget by its owner and key: `agent/writer`, `campaign/` and an id, `day`. Null for the budget in an agent's file.
    pub budget: Option<String>,
    /// The command that raises the limit, alike for all tasks of the budget: the limit is enough for each of their calls alone. For a step, the
    /// retry of its flow, which also reads the budget in the agent's file again.
    pub command: String,
    /// The flow of which the task is a step. Bulk actions leave steps out.
    #[serde(default)]
    pub flow_id: Option<Uuid>,
}

/// The present amounts of budgets, each of which is read once.
#[derive(Debug, Default)]
pub struct PresentBudgets(HashMap<(&'static str, String), PresentBudget>);

#[derive(Debug)]
enum PresentBudget {
    Unlimited,
    OfClosedCampaign,
    OfCampaign(Uuid, Box<campaigns::Budget>),
    Owned(Box<OwnedBudget>),
}

/// Checks the budget at which a task has failed for its retry.
pub async fn retry_outlook(
    conn: &mut PgConnection,
    id: Uuid,
    refusal: &Refusal,
    known: &mut PresentBudgets,
) -> Result<RetryOutlook, Error> {
    if !matches!(refusal.owner, Owner::Task(_)) {
        return Ok(known.get(conn, &refusal.owner).await?.outlook(refusal.call));
    }
    let ExplainedColumns { flow, .. } = explained_columns(&mut *conn, id).await?;
    if let Some((flow_id, step)) = flow {
        return Ok(RetryOutlook::AgentFile { flow_id, step });
    }
    Ok(RetryOutlook::of_task(&get(conn, id).await?, refusal))
}

/// Finds those of the failed and cancelled tasks whose retry would fail again at their budget or wait for it, and those that are retried with
/// their flow.
pub async fn refused_retries(
    conn: &mut PgConnection,
    tasks: &[&Task],
) -> Result<Vec<RefusedRetry>, Error> {
    let failed = tasks.iter().filter(|task| matches!(task.state, State::Failed | State::Cancelled));
    let jobs: Vec<i64> = failed.map(|task| task.job_id).collect();
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = PresentBudgets::default();
    let mut outlooks = Vec::new();
    let mut steps = Vec::new();
    for task in of_jobs(&mut *conn, &jobs).await? {
        let own = task.budget_refusal.as_ref().map(|Json(refusal)| &refusal.owner);
        if let Some(step) = task.flow_step()
            && !matches!(own, Some(Owner::Task(_)))
        {
            steps.push(RefusedRetry::of_step(task.id, step));
            continue;
        }
        let Some(Json(stored)) = task.budget_refusal else { continue };
        let outlook = retry_outlook(&mut *conn, task.id, &stored, &mut known);
        let outlook = Box::pin(outlook).await?;
        outlooks.push((task.id, stored, outlook));
    }
    let mut refused = refused_of(&outlooks);
    refused.extend(steps);
    Ok(refused)
}

/// Describes the retries that would fail again or wait. Commands set absolute limits, so that those of one budget name the highest one.
fn refused_of(outlooks: &[(Uuid, Refusal, RetryOutlook)]) -> Vec<RefusedRetry> {
    let command_of = |own: &Refusal| {
        let all = outlooks.iter().filter_map(|(_, _, outlook)| outlook.refusal());
        let same = all.filter(|it| it.owner == own.owner && it.unit == own.unit);
        same.max_by_key(|it| it.sufficient_limit()).unwrap_or(own).raise_command()
    };
    let refused = |(id, stored, outlook): &(Uuid, Refusal, RetryOutlook)| {
        outlook.refused_retry(*id, stored, command_of)
    };
    outlooks.iter().filter_map(refused).collect()
}

/// Counts the retries that would fail again, those that would wait, and the steps that are retried with their flows: of all tasks, or of the
/// first ones that were checked.
pub fn describe_refused(refused: &[RefusedRetry], first: Option<usize>) -> String {
    let n_steps = refused.iter().filter(|retry| retry.flow_id.is_some()).count();
    let n_waiting = refused.iter().filter(|retry| retry.flow_id.is_none() && retry.waits).count();
    let tasks = |n: usize| match first {
        Some(of) => format!("{n} of the first {of} tasks"),
        None => count(n, "task", "tasks"),
    };
    let (is, are) = ("is a step of a flow and is", "are steps of flows and are");
    let words = [
        (
            refused.len() - n_steps - n_waiting,
            "would fail again at once, because a limit is too low for their call".to_owned(),
        ),
        (n_waiting, "would wait for space in a budget".to_owned()),
        (n_steps, format!("{} retried with the flow", if n_steps == 1 { is } else { are })),
    ];
    let words =
        words.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{} {words}", tasks(*n)));
    words.collect::<Vec<String>>().join("; ")
}

impl RefusedRetry {
    fn of_step(task_id: Uuid, flow_step: (Uuid, &str)) -> Self {
        let because = "a retry of the task alone leaves the later steps of its flow cancelled";
        Self {
            task_id,
            waits: false,
            because: because.to_owned(),
            budget: None,
            command: retry_command(task_id, Some(flow_step)),
            flow_id: Some(flow_step.0),
        }
    }
}

impl RetryOutlook {
    /// Describes a retry that would fail again or wait. `None`: the budget allows the call, or nothing is known.
    pub(in crate::domain) fn refused_retry(
        &self,
        task_id: Uuid,
        stored: &Refusal,
        command_of: impl Fn(&Refusal) -> String,
    ) -> Option<RefusedRetry> {
        let (because, budget, command) = match self {
            Self::Refusal(refusal) | Self::Wait(refusal) => (
                refusal.amounts(),
                Some(refusal.owner.subject()),
                command_of(refusal).trim_matches('`').to_owned(),
            ),
            Self::AgentFile { flow_id, step } => (
                format!("{}; raise the budget in the agent's file first", stored.amounts()),
                None,
                retry_command(task_id, Some((*flow_id, step))),
            ),
            Self::Space | Self::Unknown => return None,
        };
        let (waits, flow_id) = (matches!(self, Self::Wait(_)), self.flow_id());
        Some(RefusedRetry { task_id, waits, because, budget, command, flow_id })
    }

    fn of(checked: Result<(), Refusal>) -> Self {
        match checked {
            Ok(()) => Self::Space,
            Err(refusal) if refusal.waits() => Self::Wait(refusal),
            Err(refusal) => Self::Refusal(refusal),
        }
    }

    /// Checks a task's own budget. Only the stored refusal knows the effect of the limit, which is in the agent's file.
    fn of_task(task: &Task, stored: &Refusal) -> Self {
        let checked = task.check_budget(Amount::ZERO, stored.call);
        Self::of(checked.map_err(|refusal| Refusal { on_limit: stored.on_limit, ..refusal }))
    }

    /// Returns the flow with which a step is retried that failed at the budget in its agent's file.
    fn flow_id(&self) -> Option<Uuid> {
        match self {
            Self::AgentFile { flow_id, .. } => Some(*flow_id),
            Self::Refusal(_) | Self::Wait(_) | Self::Space | Self::Unknown => None,
        }
    }

    /// Returns the refusal that a retry would meet, with the present amounts.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refusal(refusal) | Self::Wait(refusal) => Some(refusal),
            Self::Space | Self::AgentFile { .. } | Self::Unknown => None,
        }
    }
}

impl PresentBudgets {
    async fn get(
        &mut self,
        conn: &mut PgConnection,
        owner: &Owner,
    ) -> Result<&PresentBudget, Error> {
        Ok(match self.0.entry(owner.columns()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(PresentBudget::read(conn, owner).await?),
        })
    }
}

impl PresentBudget {
    async fn read(conn: &mut PgConnection, owner: &Owner) -> Result<Self, Error> {
        if let Owner::Campaign(id) = owner {
            return Self::of_campaign(conn, *id).await;
        }
        let (name, key) = owner.columns();
        let kind = OwnerKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        let budget = match kind {
            Some(kind) => budgets::find(conn, kind, &key, None).await?,
            None => None,
        };
        Ok(budget.map_or(Self::Unlimited, |budget| Self::Owned(Box::new(budget))))
    }

    /// The list of budgets leaves out those of closed campaigns, and is read as a whole.
    async fn of_campaign(conn: &mut PgConnection, id: Uuid) -> Result<Self, Error> {
        match campaigns::get(&mut *conn, id).await {
            Ok(campaign) if campaign.status != Status::Closed => {}
            Ok(_) | Err(campaigns::Error::Unknown(_)) => return Ok(Self::OfClosedCampaign),
            Err(error) => return Err(error.into()),
        }
        let budget = campaigns::budget(conn, id).await?;
        Ok(budget.map_or(Self::Unlimited, |budget| Self::OfCampaign(id, Box::new(budget))))
    }

    fn outlook(&self, call: Amount) -> RetryOutlook {
        RetryOutlook::of(match self {
            Self::Unlimited => Ok(()),
            Self::OfClosedCampaign => return RetryOutlook::Unknown,
            Self::OfCampaign(id, budget) => {
                let owner = Owner::Campaign(*id);
                let checked = budget.limit.check(owner, budget.spent, budget.reserved, call);
                checked.map_err(|refusal| Refusal { on_limit: budget.on_limit, ..refusal })
            }
            Self::Owned(budget) => budget.check(call),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        amount::{Limit, OnLimit},
        campaigns::ExperimentBudget,
    };

    const TASK: Uuid = Uuid::from_u128(1);

    fn stored() -> Refusal {
        let (used, limit) = (Amount { micros: 0, tokens: 9 }, Some(9));
        let limit = Limit { micros: None, tokens: limit };
        limit.check(Owner::Task(TASK), used, Amount::ZERO, used).unwrap_err()
    }

    #[test]
    fn a_retry_that_the_budget_allows_by_now_is_not_refused() {
        for outlook in [RetryOutlook::Space, RetryOutlook::Unknown] {
            assert!(refused_of(&[(TASK, stored(), outlook)]).is_empty());
        }
    }

    #[test]
    fn retries_at_one_budget_name_the_limit_that_is_enough_for_each() {
        let refused = |id: u128, agent: &str, micros: i64| {
            let (owner, needed) = (Owner::Agent(agent.into()), Amount { micros, tokens: 0 });
            let limit = Limit { micros: Some(500_000), tokens: None };
            let refusal = limit.check(owner, Amount::ZERO, Amount::ZERO, needed).unwrap_err();
            (Uuid::from_u128(id), refusal.clone(), RetryOutlook::Refusal(refusal))
        };
        let all = [
            refused(1, "writer", 650_000),
            refused(2, "writer", 810_000),
            refused(3, "planner", 520_000),
        ];
        let commands: Vec<_> = refused_of(&all).into_iter().map(|retry| retry.command).collect();
        let of_writer = "dalsegno budget set agent writer --money 0.81";
        assert_eq!(commands[..2], [of_writer, of_writer]);
        assert_eq!(commands[2], "dalsegno budget set agent planner --money 0.52");
    }

    #[test]
    fn a_count_names_the_tasks_that_were_checked() {
        let words = "would fail again at once, because a limit is too low for their call";
        let at_budget = |id| {
            let refusal = RetryOutlook::Refusal(stored());
            refused_of(&[(Uuid::from_u128(id), stored(), refusal)]).remove(0)
        };
        assert_eq!(describe_refused(&[at_budget(1)], None), format!("1 task {words}"));
        let many: Vec<RefusedRetry> = (0..20).map(at_budget).collect();
        assert_eq!(describe_refused(&many, Some(20)), format!("20 of the first 20 tasks {words}"));
        let waits = RefusedRetry { waits: true, ..at_budget(2) };
        let waiting = "1 task would wait for space in a budget";
        assert_eq!(
            describe_refused(&[at_budget(1), waits], None),
            format!("1 task {words}; {waiting}")
        );
        let step = RefusedRetry::of_step(TASK, (Uuid::from_u128(3), "draft"));
        assert_eq!(
            describe_refused(&[at_budget(1), step.clone()], None),
            format!("1 task {words}; 1 task is a step of a flow and is retried with the flow")
        );
        let steps = "2 of the first 20 tasks are steps of flows and are retried with the flow";
        assert_eq!(describe_refused(&[step.clone(), step], Some(20)), steps);
    }

    #[test]
    fn a_retry_below_the_whole_limit_waits_unless_the_budget_lets_it_fail() {
        let call = Amount { micros: 0, tokens: 3_975 };
        let spent = Amount { micros: 0, tokens: 1_127 };
        let outlook = |tokens: i64, on_limit: OnLimit| {
            let limit = Limit { micros: None, tokens: Some(tokens) };
            let soft = Limit::default();
            let (reserved, experiments) = (Amount::ZERO, ExperimentBudget::default());
            let budget = campaigns::Budget { limit, soft, spent, reserved, on_limit, experiments };
            PresentBudget::OfCampaign(TASK, Box::new(budget)).outlook(call)
        };
        assert!(matches!(outlook(3_500, OnLimit::Wait), RetryOutlook::Refusal(_)));
        assert!(matches!(outlook(4_500, OnLimit::Wait), RetryOutlook::Wait(_)));
        assert!(matches!(outlook(4_500, OnLimit::Fail), RetryOutlook::Refusal(_)));
        assert_eq!(outlook(5_200, OnLimit::Wait), RetryOutlook::Space);
        let waits = refused_of(&[(TASK, stored(), outlook(4_500, OnLimit::Wait))]).remove(0);
        assert!(waits.waits && waits.because.contains("1127 tokens of 4500"), "{waits:?}");
    }

    #[test]
    fn a_retry_at_the_own_budget_of_a_task_has_the_effect_of_its_agents_file() {
        // The whole limit has space for the call, and the rest of it does not.
        let task = Task { budget_tokens: Some(12), spent_tokens: 9, ..Task::example() };
        let outlook = |on_limit| RetryOutlook::of_task(&task, &Refusal { on_limit, ..stored() });
        assert!(matches!(outlook(OnLimit::Fail), RetryOutlook::Refusal(_)));
        assert!(matches!(outlook(OnLimit::Wait), RetryOutlook::Wait(_)));
    }

    #[test]
    fn a_step_with_the_budget_of_its_agents_file_names_the_retry_of_its_flow() {
        let flow_id = Uuid::from_u128(3);
        let outlook = RetryOutlook::AgentFile { flow_id, step: "draft".to_owned() };
        let refused = refused_of(&[(TASK, stored(), outlook)]).remove(0);
        assert_eq!(refused.command, format!("dalsegno flow retry {flow_id} --from draft"));
        assert!(refused.because.ends_with("raise the budget in the agent's file first"));
        assert_eq!(refused.budget, None);
    }
}
