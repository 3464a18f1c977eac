//! Explanations of the states of tasks and sessions: the reason, and what has to happen next.
//!
//! The queue knows why a job waits. This module adds the facts of the domain: the campaign, the budget, the session, and the provider's
//! last error. A pure function makes the text of these facts.

mod obstacle;
mod session;
mod session_words;
mod wait_reasons;
mod wait_words;
mod words;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::{
    obstacle::Obstacle,
    session::{SessionExplanation, explain_session},
    wait_reasons::{describe_wait, describe_wait_end},
};

use crate::{
    domain::{
        Amount,
        agent_pauses::{self, Pause},
        amount::{Owner, Refusal},
        batches::{self, BatchWait},
        budgets::{self, OwnerKind},
        busy_models,
        campaigns::{self, Campaign, CampaignPause},
        failovers::{self, ConversationKey},
        flows,
        rate_limits::{self, RateLimitWait},
        sessions::{self, Session},
        tasks::{
            self, Error, ExplainedColumns, PresentBudgets, RetryOutlook, State, Task, TaskWaits,
            explained_columns, get, waits_of,
        },
        turns::{self, Turn},
    },
    queue::admin::{self, Cause, HoldOf, RunningHead},
};

/// The explanation of a task's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskExplanation)]
pub struct Explanation {
    pub task_id: Uuid,
    pub state: State,
    /// The reason of the state.
    pub because: String,
    /// The next step, and who has to take it.
    pub next: String,
    /// For callers in this process, which offer to remove them.
    #[serde(skip)]
    pub obstacles: Vec<Obstacle>,
}

/// The facts about a task at one moment.
#[derive(Debug, Clone)]
struct TaskFacts {
    task: Task,
    campaign: Campaign,
    campaign_pause: Option<CampaignPause>,
    /// The refusal of a budget that cannot pay for another turn of the last one's size.
    spent: Option<Refusal>,
    /// The refusal of the budget for which it waits; an inner `None`: the budget has space by now.
    budget_wait: Option<Option<Refusal>>,
    /// The refusal of the budget at which it has failed, and the result of a retry.
    budget_refusal: Option<(Refusal, RetryOutlook)>,
    /// The batch of its call, for which it waits.
    batch_wait: Option<BatchWait>,
    /// Its wait for a rate limit.
    limit_wait: Option<RateLimitWait>,
    /// Its provider refuses calls for now, and it has waited for it since then.
    busy_since: Option<DateTime<Utc>>,
    /// All tasks with its model wait, so that a retry of its job waits with them.
    is_model_busy: bool,
    /// Its earliest start.
    run_at: Option<DateTime<Utc>>,
    /// The open session of its conversation, or else its own.
    session: Option<Session>,
    last_turn: Option<Turn>,
    /// The models of its agent's chain that the next turn skips.
    rests: Vec<String>,
    /// The turn of its conversation that runs, while its own job waits for that one's.
    turn_ahead: Option<TurnAhead>,
    /// The task at the head of its conversation, for which it waits. Not loaded beside a turn that runs.
    head: Option<HeadTask>,
    /// The pauses of its agent: in its campaign, and in all campaigns.
    pauses: Vec<Pause>,
    /// Its dependencies, while it waits for them.
    waiting: Option<TaskWaits>,
    /// Its flow, and its step there.
    flow: Option<(Uuid, String)>,
    /// Its flow, if that is paused.
    paused_flow: Option<Uuid>,
    cancelled_because: Option<String>,
    job: admin::Explanation,
}

/// A running turn of another task in the same conversation.
#[derive(Debug, Clone)]
struct TurnAhead {
    number: i32,
    task_id: Uuid,
    head: RunningHead,
}

/// The task at the head of a conversation, for which the others wait.
#[derive(Debug, Clone)]
struct HeadTask {
    task_id: Uuid,
    agent: String,
    instance: String,
    because: String,
    obstacles: Vec<Obstacle>,
}

pub async fn explain(conn: &mut PgConnection, id: Uuid) -> Result<Explanation, Error> {
    let task = get(&mut *conn, id).await?;
    let job = admin::explain(&mut *conn, task.job_id).await?;
    let mut facts = load_facts(&mut *conn, task, job).await?;
    facts.turn_ahead = turn_ahead(&mut *conn, &facts).await?;
    if facts.turn_ahead.is_none() {
        facts.head = head(conn, &facts.job).await?;
    }
    Ok(facts.explain())
}

/// Explains a task to a caller that may not see other jobs of its lane.
pub async fn explain_alone(conn: &mut PgConnection, id: Uuid) -> Result<Explanation, Error> {
    let task = get(&mut *conn, id).await?;
    let job = admin::explain_alone(&mut *conn, task.job_id).await?;
    Ok(load_facts(conn, task, job).await?.explain())
}

async fn load_facts(
    conn: &mut PgConnection,
    task: Task,
    job: admin::Explanation,
) -> Result<TaskFacts, Error> {
    let id = task.id;
    let campaign = campaigns::get(&mut *conn, task.campaign_id).await?;
    let campaign_pause = campaigns::find_pause(&mut *conn, campaign.id).await?;
    let session = session(&mut *conn, &task).await?;
    let busy_since = busy_since(&mut *conn, &task, &job).await?;
    let is_model_busy = match session.as_ref().filter(|_| busy_since.is_some()) {
        Some(Session { provider, model, .. }) => {
            busy_models::find(&mut *conn, provider, model).await?.is_some()
        }
        None => false,
    };
    let ExplainedColumns { cancelled_because, flow, run_at, refusal } =
        explained_columns(&mut *conn, id).await?;
    let paused_flow = match flow.as_ref().map(|(flow, _)| *flow) {
        Some(flow) => flows::is_paused(&mut *conn, flow).await?.then_some(flow),
        None => None,
    };
    Ok(TaskFacts {
        rests: rests(&mut *conn, &task).await?,
        budget_refusal: check_retry(&mut *conn, id, refusal).await?,
        flow,
        paused_flow,
        spent: spent(&mut *conn, &task, session.as_ref()).await?,
        budget_wait: budget_wait(&mut *conn, &task, &job).await?,
        batch_wait: batch_wait(&mut *conn, &task, &job).await?,
        limit_wait: limit_wait(&mut *conn, &task, &job).await?,
        busy_since,
        is_model_busy,
        run_at,
        session,
        waiting: waits_of(&mut *conn, &[id]).await?.remove(&id).filter(|waiting| waiting.waits),
        cancelled_because,
        turn_ahead: None,
        head: None,
        last_turn: turns::of_task(&mut *conn, id).await?.pop(),
        pauses: pauses(&mut *conn, &task).await?,
        job,
        task,
        campaign,
        campaign_pause,
    })
}

/// Finds the turn for which a blocked job waits. Without one, its lane waits for a job that is not in a turn.
async fn turn_ahead(
    conn: &mut PgConnection,
    facts: &TaskFacts,
) -> Result<Option<TurnAhead>, Error> {
    let (Some(session), "blocked") = (&facts.session, facts.job.state.as_str()) else {
        return Ok(None);
    };
    let Some(head) = admin::running_head(&mut *conn, facts.job.job_id).await? else {
        return Ok(None);
    };
    let latest = turns::of_session(conn, session.id, None, 1).await?.pop();
    let running =
        latest.filter(|turn| turn.state == turns::State::Running && turn.job_id == head.job_id);
    Ok(running.map(|turn| TurnAhead { number: turn.number, task_id: turn.task_id, head }))
}

/// Finds the task at the head of the lane, and explains it. The head waits for no job of its lane.
async fn head(
    conn: &mut PgConnection,
    job: &admin::Explanation,
) -> Result<Option<HeadTask>, Error> {
    let job_id = match &job.cause {
        Cause::Behind { job_id, .. } => *job_id,
        Cause::Hold { of: HoldOf::Job(job_id), .. } if *job_id != job.job_id => *job_id,
        _ => return Ok(None),
    };
    let Some(line) = tasks::of_jobs(&mut *conn, &[job_id]).await?.pop() else { return Ok(None) };
    let task = get(&mut *conn, line.id).await?;
    let job = admin::explain(&mut *conn, job_id).await?;
    let (agent, instance) = (task.agent.clone(), task.instance.clone());
    let explanation = Box::pin(load_facts(conn, task, job)).await?.explain();
    let Explanation { task_id, because, obstacles, .. } = explanation;
    Ok(Some(HeadTask { task_id, agent, instance, because, obstacles }))
}

/// Finds the open session of the conversation, or else the one that the task ran in.
async fn session(conn: &mut PgConnection, task: &Task) -> Result<Option<Session>, Error> {
    let own = match task.session_id {
        Some(id) => match sessions::get(&mut *conn, id).await {
            // A cleanup has removed it, long after the task has ended.
            Err(sessions::Error::Unknown(_)) => None,
            own => Some(own?),
        },
        None => None,
    };
    if own.as_ref().is_some_and(|own| own.closed_at.is_none()) {
        return Ok(own);
    }
    let open =
        sessions::of_conversation(conn, task.campaign_id, &task.agent, &task.instance).await?;
    Ok(open.or(own))
}

async fn pauses(conn: &mut PgConnection, task: &Task) -> Result<Vec<Pause>, Error> {
    let mut open = agent_pauses::list_open(conn, task.campaign_id).await?;
    open.retain(|pause| pause.agent == task.agent);
    Ok(open)
}

/// Describes the models of its conversation that rest, while the task is open.
async fn rests(conn: &mut PgConnection, task: &Task) -> Result<Vec<String>, Error> {
    if task.state.has_ended() {
        return Ok(Vec::new());
    }
    let Task { campaign_id, agent, instance, .. } = task;
    let of = ConversationKey { campaign_id: *campaign_id, agent, instance };
    Ok(failovers::find(conn, of).await?.describe_rests())
}

/// Finds the batch for which a task waits.
async fn batch_wait(
    conn: &mut PgConnection,
    task: &Task,
    job: &admin::Explanation,
) -> Result<Option<BatchWait>, Error> {
    match job.state.as_str() {
        "scheduled" => Ok(batches::wait_of(conn, task.id).await?),
        _ => Ok(None),
    }
}

/// Finds the rate limit for which a task waits.
async fn limit_wait(
    conn: &mut PgConnection,
    task: &Task,
    job: &admin::Explanation,
) -> Result<Option<RateLimitWait>, Error> {
    match job.state.as_str() {
        "scheduled" => Ok(rate_limits::wait_of(conn, task.id).await?),
        _ => Ok(None),
    }
}

/// Returns the start of a task's wait for its provider.
async fn busy_since(
    conn: &mut PgConnection,
    task: &Task,
    job: &admin::Explanation,
) -> Result<Option<DateTime<Utc>>, Error> {
    match job.cause {
        Cause::Snooze => Ok(tasks::busy_since(conn, task.id).await?),
        _ => Ok(None),
    }
}

/// Checks the budget at which a task has failed for its retry.
async fn check_retry(
    conn: &mut PgConnection,
    id: Uuid,
    refusal: Option<Refusal>,
) -> Result<Option<(Refusal, RetryOutlook)>, Error> {
    let Some(refusal) = refusal else { return Ok(None) };
    let known = &mut PresentBudgets::default();
    let outlook = Box::pin(tasks::retry_outlook(conn, id, &refusal, known)).await?;
    Ok(Some((refusal, outlook)))
}

/// Finds the budget for which a task waits, with its present amounts.
async fn budget_wait(
    conn: &mut PgConnection,
    task: &Task,
    job: &admin::Explanation,
) -> Result<Option<Option<Refusal>>, Error> {
    let wait = match job.state.as_str() {
        "scheduled" => budgets::wait_of(&mut *conn, task.id).await?,
        _ => None,
    };
    let Some(wait) = wait else { return Ok(None) };
    Ok(Some(match wait.owner.as_str() {
        "task" => task.check_budget(Amount::ZERO, wait.needed).err(),
        "campaign" => refusal_of_campaign(conn, task, wait.needed).await?,
        owner => {
            let kind = [OwnerKind::Agent, OwnerKind::User, OwnerKind::Day];
            let kind = kind.into_iter().find(|kind| kind.as_str() == owner);
            let budget = match kind {
                Some(kind) => budgets::find(conn, kind, &wait.key, None).await?,
                None => None,
            };
            budget.and_then(|budget| budget.check(wait.needed).err())
        }
    }))
}

async fn refusal_of_campaign(
    conn: &mut PgConnection,
    task: &Task,
    needed: Amount,
) -> Result<Option<Refusal>, Error> {
    let budget = campaigns::budget(conn, task.campaign_id).await?;
    Ok(budget.and_then(|budget| {
        let owner = Owner::Campaign(task.campaign_id);
        budget.limit.check(owner, budget.spent, budget.reserved, needed).err()
    }))
}

/// Checks the budget by the size of the context, which the next call sends again. Only the turn knows the exact amount: the queue then has
/// its error.
async fn spent(
    conn: &mut PgConnection,
    task: &Task,
    session: Option<&Session>,
) -> Result<Option<Refusal>, Error> {
    let tokens = session.map_or(1, |session| session.context_tokens.max(1));
    let needed = Amount { micros: 1, tokens };
    match task.check_budget(Amount::ZERO, needed) {
        Err(refusal) => Ok(Some(refusal)),
        Ok(()) => refusal_of_campaign(conn, task, needed).await,
    }
}
