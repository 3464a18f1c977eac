//! Things that wait for a person: providers that refuse calls or cannot be reached, failed tasks, held jobs and lanes, pauses, credentials over their limit,
//! budgets that are used up, and warnings of the doctor.

mod groups;
mod obstacles;
mod providers;
mod warnings;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

pub use self::{
    groups::{
        count_group, count_members, describe_cut, describe_group, describe_unread, group_failures,
        lacks_members, retry_steps,
    },
    providers::{WaitingModel, waiting_models},
};
use super::{
    StatementError,
    agent_pauses::{self, Pause},
    amount::{Owner, Refusal},
    audit::describe_label,
    campaigns,
    class::{Class, Classify},
    credentials,
    tasks::{self, FailedTask, FailureQuery, FailureTotals, PresentBudgets, RetryOutlook},
    text::count,
};
use crate::queue::{
    self,
    admin::{self, HeldCount},
};

/// Age up to which failures are listed, here and by the doctor.
pub const FAILED_WITHIN: TimeDelta = TimeDelta::days(7);
/// Most entries of one kind. Of failed tasks: most groups.
const MAX_OF_KIND: i64 = 20;
/// Failed tasks that are read at most, here and for the page of budgets. Each is on a page of its own of the table, in most cases with its error
/// outside of the row, so their number decides how long the overview takes.
pub const MAX_FAILED_READ: i64 = 1_000;
/// Failed tasks of a group that are listed at most.
const MAX_OF_GROUP: i32 = 20;
/// Failed tasks that are listed at most: each of 20 groups has at least five of them, or all.
const MAX_FAILED_LISTED: i64 = 100;

/// A thing that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Attention {
    pub kind: Kind,
    /// Id of the task, the campaign or the webhook, or name of the queue, the lane, the agent, the credential, the model or the schedule.
    pub subject: String,
    /// The subject in words: the beginning of the prompt, or a name.
    pub name: String,
    pub agent: Option<String>,
    pub campaign_id: Option<Uuid>,
    /// The reason. Of a failed task, its error.
    pub because: String,
    /// Of a task that failed at a budget which would refuse a retry, too: the present amounts, if they are not those of the error.
    #[serde(default)]
    pub present: Option<String>,
    /// The command that resolves it.
    pub command: String,
    /// The command that comes after it, if it takes two.
    #[serde(default)]
    pub then: Option<String>,
    /// Of a failed task: number of its group in this list, from 1. Tasks with the same number failed with the same error, or at the same
    /// budget.
    #[serde(default)]
    pub group: Option<i64>,
    /// Of the oldest listed task of those that failed with the same error, or at the same budget: number of older ones, which are not listed.
    #[serde(default)]
    pub unlisted: Option<i64>,
    /// Of a failed step: the flow with which it is retried.
    #[serde(default)]
    pub flow_id: Option<Uuid>,
    /// Of a failed step: its name, from which the flow is retried.
    #[serde(default)]
    pub step: Option<String>,
    /// The budget that refuses a call, by its owner and key: `agent/writer`, `campaign/` and an id, `day`.
    #[serde(default)]
    pub budget: Option<String>,
    /// Of a task that failed at a budget of several tasks: that budget, like `budget`, even if it allows a retry now.
    #[serde(default)]
    pub refused_by: Option<String>,
    /// Of deliveries that failed for good: the time of the oldest one, from which a replay sends them again.
    #[serde(default)]
    pub replay_since: Option<DateTime<Utc>>,
    pub since: Option<DateTime<Utc>>,
    /// The end, if it resolves itself.
    pub until: Option<DateTime<Utc>>,
    /// Number of jobs or tasks that are affected, where that is known.
    pub count: Option<i64>,
}

/// Everything that waits for a person, and how many failed tasks were read for it.
#[derive(Debug)]
pub struct AttentionList {
    pub items: Vec<Attention>,
    pub failures: FailureTotals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AttentionKind)]
pub enum Kind {
    FailedTask,
    HeldJobs,
    PausedQueue,
    PausedCampaign,
    PausedAgent,
    PausedCredential,
    SpentBudget,
    /// A task that waits for its own budget.
    SpentTaskBudget,
    /// A model whose provider refuses calls for now.
    BusyModel,
    /// A model whose tasks wait one by one, in most cases for a server that cannot be reached.
    ProviderWait,
    HeldLane,
    /// A queue with ready jobs and no worker.
    DesertedQueue,
    /// Dead letters that are no tasks.
    DeadJobs,
    BrokenAgentFiles,
    /// A webhook that was disabled because its deliveries failed.
    DisabledWebhook,
    FailingWebhook,
    /// Deliveries that were given up after their last attempt.
    FailedDeliveries,
    PausedCleanup,
    OverdueCleanup,
    OldTransaction,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Queue(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Lists what waits for a person, the most urgent kind first.
pub async fn list(
    conn: &mut PgConnection,
    n_broken_files: usize,
    now: DateTime<Utc>,
) -> Result<AttentionList, Error> {
    let query = FailureQuery {
        since: now - FAILED_WITHIN,
        max_read: MAX_FAILED_READ,
        max_groups: MAX_OF_KIND,
        max_of_group: MAX_OF_GROUP,
        max_listed: MAX_FAILED_LISTED,
    };
    let (failed, failures) = tasks::list_failures(&mut *conn, &query).await?;
    let credentials = credentials::list_paused(&mut *conn, now).await?;
    let busy = providers::list(&mut *conn, &credentials, now).await?;
    let budgets = obstacles::budgets(&mut *conn).await?;
    let health = admin::health(&mut *conn).await?;
    let lanes = obstacles::held_lanes(&mut *conn, health.held_lanes).await?;
    let queues = admin::list_queues(&mut *conn).await?;
    let pauses = agent_pauses::list_all(&mut *conn).await?;
    let campaigns = campaigns::paused(&mut *conn, MAX_OF_KIND).await?;
    let campaigns = of_campaigns(&mut *conn, campaigns).await?;
    let warnings = warnings::list(&mut *conn, &queues, &health, n_broken_files, now).await?;
    let failed = of_failures(&mut *conn, failed).await?;
    let reasons: Vec<String> = pauses.iter().map(Pause::hold_reason).collect();
    let by_pauses = if reasons.is_empty() {
        Vec::new()
    } else {
        admin::count_held(&mut *conn, &reasons).await?
    };
    let queues = queues.iter().flat_map(|queue| [of_held(queue, &by_pauses), of_paused(queue)]);
    let queues = queues.flatten();
    let pauses = pauses.iter().map(|pause| of_pause(pause, &by_pauses));
    let credentials = credentials.into_iter().filter_map(|credential| {
        let until = credential.paused_until?;
        let because = credential.why.unwrap_or_default();
        Some(Attention {
            until: Some(until),
            count: Some(credential.sessions),
            ..Attention::of(
                Kind::PausedCredential,
                &credential.name,
                because,
                format!("dalsegno credential resume {}", credential.name),
            )
        })
    });
    let items = busy
        .into_iter()
        .chain(failed)
        .chain(budgets)
        .chain(queues)
        .chain(lanes)
        .chain(campaigns)
        .chain(pauses)
        .chain(credentials)
        .chain(warnings)
        .collect();
    Ok(AttentionList { items, failures })
}

impl Attention {
    /// Returns an item that has only a subject, a reason and a command.
    pub fn of(kind: Kind, subject: &str, because: String, command: String) -> Self {
        Self {
            kind,
            subject: subject.to_owned(),
            name: subject.to_owned(),
            agent: None,
            campaign_id: None,
            because,
            present: None,
            command,
            then: None,
            group: None,
            unlisted: None,
            flow_id: None,
            step: None,
            budget: None,
            refused_by: None,
            replay_since: None,
            since: None,
            until: None,
            count: None,
        }
    }
}

/// Describes failed tasks. A retry of a task that failed at a budget fails again until its limit is raised. Each budget is read once.
async fn of_failures(
    conn: &mut PgConnection,
    failed: Vec<FailedTask>,
) -> Result<Vec<Attention>, Error> {
    let mut all = Vec::with_capacity(failed.len());
    let mut known = PresentBudgets::default();
    for task in failed {
        let outlook = match &task.line.budget_refusal {
            Some(Json(refusal)) => {
                let outlook = tasks::retry_outlook(&mut *conn, task.line.id, refusal, &mut known);
                Some(Box::pin(outlook).await?)
            }
            None => None,
        };
        all.push(of_failed(task, outlook));
    }
    Ok(all)
}

fn of_failed(task: FailedTask, outlook: Option<RetryOutlook>) -> Attention {
    let FailedTask { line: task, group_place, unlisted } = task;
    let retry = tasks::retry_command(task.id, task.flow_step());
    let refusal = task.budget_refusal.as_ref().map(|Json(refusal)| refusal);
    let refused = outlook.zip(refusal).and_then(|(outlook, refusal)| {
        outlook.refused_retry(task.id, refusal, Refusal::raise_command)
    });
    let error = match refusal {
        Some(refusal) => refusal.amounts(),
        None => task.error.unwrap_or_default(),
    };
    let (because, present, command, budget) = match refused {
        // The reason of a step has the amounts of its error, and names the agent's file.
        Some(refused) if refused.flow_id.is_some() || refused.because == error => {
            (refused.because, None, refused.command, refused.budget)
        }
        Some(refused) => (error, Some(refused.because), refused.command, refused.budget),
        None => (error, None, retry.clone(), None),
    };
    let then = budget.is_some().then_some(retry);
    let refused_by = refusal.filter(|it| !matches!(it.owner, Owner::Task(_)));
    Attention {
        name: task.prompt,
        agent: Some(task.agent),
        campaign_id: Some(task.campaign_id),
        since: task.ended_at,
        present,
        then,
        group: Some(group_place),
        unlisted,
        flow_id: task.flow_id,
        step: task.step,
        budget,
        refused_by: refused_by.map(|it| it.owner.subject()),
        ..Attention::of(Kind::FailedTask, &task.id.to_string(), because, command)
    }
}

/// Those that are held for the pause of an agent belong to that pause.
fn of_held(queue: &admin::QueueView, by_pauses: &[HeldCount]) -> Option<Attention> {
    let of_pauses = by_pauses.iter().filter(|it| it.queue == queue.queue).map(|it| it.jobs);
    let n_held = queue.held - of_pauses.sum::<i64>();
    let because = count(n_held, "job of the queue is held", "jobs of the queue are held");
    let command = format!("dalsegno job ls --state held --queue {}", queue.queue);
    let attention = Attention::of(Kind::HeldJobs, &queue.queue, because, command);
    (n_held > 0).then_some(Attention { count: Some(n_held), ..attention })
}

fn of_paused(queue: &admin::QueueView) -> Option<Attention> {
    let reason = queue.pause_reason.clone().unwrap_or_default();
    let command = format!("dalsegno queue resume {}", queue.queue);
    let attention = Attention::of(Kind::PausedQueue, &queue.queue, reason, command);
    queue.paused_at.map(|since| Attention { since: Some(since), ..attention })
}

async fn of_campaigns(
    conn: &mut PgConnection,
    paused: Vec<(Uuid, String)>,
) -> Result<Vec<Attention>, Error> {
    let mut all = Vec::new();
    for (id, name) in paused {
        let scope = admin::PauseScope::Group;
        let reason = admin::pause_reason(&mut *conn, scope, &id.to_string()).await?;
        let command = format!("dalsegno campaign resume {id}");
        let because = reason.unwrap_or_default();
        let attention = Attention::of(Kind::PausedCampaign, &id.to_string(), because, command);
        all.push(Attention { name, campaign_id: Some(id), ..attention });
    }
    Ok(all)
}

fn of_pause(pause: &Pause, held: &[HeldCount]) -> Attention {
    let reason = pause.hold_reason();
    let n_held: i64 = held.iter().filter(|it| it.reason == reason).map(|it| it.jobs).sum();
    let waiting = match n_held {
        0 => String::new(),
        n => format!("; {}", count(n, "task waits", "tasks wait")),
    };
    let author = describe_label(&pause.paused_by);
    let because = format!("paused by {author}: {}{waiting}", pause.reason);
    let command = pause.resume_command().trim_matches('`').to_owned();
    Attention {
        campaign_id: pause.campaign_id,
        since: Some(pause.paused_at),
        count: Some(n_held),
        ..Attention::of(Kind::PausedAgent, &pause.agent, because, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Amount, amount::Limit, tasks::TaskLine};

    fn tokens(tokens: i64) -> Amount {
        Amount { micros: 0, tokens }
    }

    fn failed_at(refusal: Refusal) -> FailedTask {
        let line = TaskLine {
            id: Uuid::from_u128(1),
            job_id: 1,
            campaign_id: Uuid::from_u128(2),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            prompt: "Write.".to_owned(),
            error: None,
            budget_refusal: Some(Json(refusal)),
            flow_id: Some(Uuid::from_u128(3)),
            step: Some("draft".to_owned()),
            session_id: None,
            turn: None,
            started_at: None,
            ended_at: None,
        };
        FailedTask { line, group_place: 1, unlisted: None }
    }

    #[test]
    fn a_task_that_failed_at_a_budget_keeps_its_error_beside_the_present_amounts() {
        let check = |limit: i64, spent: i64| {
            let (owner, limit) = (Owner::Agent("writer".into()), Some(limit));
            let limit = Limit { micros: None, tokens: limit };
            limit.check(owner, tokens(spent), Amount::ZERO, tokens(3_975)).unwrap_err()
        };
        let (error, present) = (check(3_500, 0), check(4_500, 1_127));
        let listed = of_failed(failed_at(error.clone()), Some(RetryOutlook::Wait(present.clone())));
        assert_eq!(
            (&listed.because, &listed.present),
            (&error.amounts(), &Some(present.amounts()))
        );
        let listed =
            of_failed(failed_at(error.clone()), Some(RetryOutlook::Refusal(error.clone())));
        assert_eq!((listed.because, listed.present), (error.amounts(), None));
    }

    #[test]
    fn tasks_at_a_budget_that_was_raised_stay_one_group() {
        let failed = |spent: i64, unlisted| {
            let limit = Limit { micros: None, tokens: Some(3_500) };
            let owner = Owner::Agent("writer".into());
            let check = limit.check(owner, tokens(spent), Amount::ZERO, tokens(3_975));
            of_failed(
                FailedTask { unlisted, ..failed_at(check.unwrap_err()) },
                Some(RetryOutlook::Space),
            )
        };
        let items = [failed(20, None), failed(10, Some(10))];
        assert_ne!(items[0].because, items[1].because);
        assert_eq!(
            (&items[0].budget, items[0].refused_by.as_deref()),
            (&None, Some("agent/writer"))
        );
        let groups = group_failures(&items);
        assert_eq!(groups.len(), 1);
        assert_eq!(count_group(&groups[0]), 12);
        assert_eq!(describe_group(&groups[0]), "at the same budget");
        let equal = failed(20, Some(10));
        assert_eq!(describe_group(&[&equal, &equal]), "at the same budget");
    }

    #[test]
    fn a_failed_step_names_its_flow_and_at_its_own_budget_the_agents_file() {
        let (owner, used) = (Owner::Task(Uuid::from_u128(1)), tokens(9));
        let limit = Limit { micros: None, tokens: Some(9) };
        let refusal = limit.check(owner, used, Amount::ZERO, used).unwrap_err();
        let task = failed_at(refusal);
        let flow_id = Uuid::from_u128(3);
        let outlook = RetryOutlook::AgentFile { flow_id, step: "draft".to_owned() };
        let words = "the budget of the task is used up: 9 tokens of 9 tokens are spent";
        let line = TaskLine {
            budget_refusal: None,
            error: Some("the model answered nothing".to_owned()),
            ..task.line.clone()
        };
        let plain = FailedTask { line, group_place: 2, unlisted: Some(4) };
        let listed = of_failed(task, Some(outlook));
        assert_eq!(listed.because, format!("{words}; raise the budget in the agent's file first"));
        assert_eq!(listed.command, format!("dalsegno flow retry {flow_id} --from draft"));
        let others = (listed.then, listed.flow_id, listed.budget, listed.refused_by);
        assert_eq!(others, (None, Some(flow_id), None, None));
        let other = of_failed(plain, None);
        assert_eq!(other.because, "the model answered nothing");
        assert_eq!((other.command, other.then), (listed.command, None));
        assert_eq!((other.flow_id, other.step.as_deref()), (Some(flow_id), Some("draft")));
        assert_eq!((other.group, other.unlisted), (Some(2), Some(4)));
    }
}
