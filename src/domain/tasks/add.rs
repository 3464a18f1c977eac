//! Taking a task in.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Links, Mode, RunTurn, State, Task, bulk, get};
use crate::{
    config::Checks,
    domain::{
        Amount, Failed,
        agents::{self, Agent},
        amount::{Limit, Owner},
        campaigns,
        feed::{self, Kind},
        ids, text,
    },
    queue,
};

/// What the queue takes, less the word that goes in front.
const MAX_KEY_CHARS: usize = 195;
/// What the queue takes.
const MAX_PRIORITY: i32 = 32_767;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub max_prompt_bytes: usize,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub campaign_id: Uuid,
    /// From the catalogue: a task for an agent that does not exist cannot be written down.
    pub agent: &'a Agent,
    /// Which one of several copies of the agent; `main` if there is one.
    pub instance: &'a str,
    pub prompt: &'a str,
    /// `None`: as the agent's file says.
    pub session_mode: Option<Mode>,
    /// Where it has no limit, that of the agent's file holds.
    pub budget: Limit,
    /// The same key and question give the same task; another question under the same key is a conflict.
    pub idempotency_key: Option<&'a str>,
    /// 0 is the most urgent.
    pub priority: Option<i32>,
    pub run_at: Option<DateTime<Utc>>,
    /// Who asks, as the audit log names them.
    pub added_by: Option<&'a str>,
    /// Which other tasks it has to do with.
    pub links: Links<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub task: Task,
    /// False: an earlier call with this idempotency key made it.
    pub created: bool,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("tasks.max_prompt_bytes", self.max_prompt_bytes as u64, 1);
    }
}

/// The serial key of a conversation.
pub fn lane(campaign_id: Uuid, agent: &str, instance: &str) -> String {
    format!("{campaign_id}/{agent}/{instance}")
}

/// Writes a task and its job. Both exist exactly if the caller's transaction commits; after an error it rolls back.
pub async fn add(
    conn: &mut PgConnection,
    config: &Config,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<Added, Error> {
    if !new.links.is_none() {
        return bulk::add_linked(conn, config, new, now).await;
    }
    check(config, new)?;
    let id = ids::at(now);
    let (job, options) = job(new, id);
    let enqueued = queue::enqueue(&mut *conn, &job, &options).await.map_err(|error| {
        match (error, new.idempotency_key) {
            (queue::Error::Conflict { .. }, Some(key)) => Error::KeyTaken(key.to_owned()),
            (error, _) => error.into(),
        }
    })?;
    if !enqueued.created {
        return Ok(Added { task: added_with(conn, enqueued.job_id).await?, created: false });
    }
    // Only what is new: whoever asks again is told of the task that is there, whatever became of its campaign.
    admit(&mut *conn, new.campaign_id).await?;
    let task = insert(&mut *conn, new, id, enqueued.job_id, now).await?;
    feed::append(conn, &[event(new, id)], now).await?;
    Ok(Added { task, created: true })
}

/// The job that runs a task.
pub(super) fn job(new: &New<'_>, id: Uuid) -> (RunTurn, queue::Options) {
    let options = queue::Options {
        lane: Some(lane(new.campaign_id, &new.agent.name, new.instance)),
        group_key: Some(new.campaign_id.to_string()),
        priority: new.priority,
        run_at: new.run_at,
        // Other kinds of jobs must not meet the keys that callers choose for tasks.
        idempotency_key: new.idempotency_key.map(|key| format!("task:{key}")),
        // For whoever looks at the job; not part of what the key compares.
        headers: Some(json!({ "task": id })),
        ..queue::Options::default()
    };
    (RunTurn { asked: asked(new, mode_of(new)) }, options)
}

pub(super) fn mode_of(new: &New<'_>) -> Mode {
    new.session_mode.unwrap_or(new.agent.session)
}

/// What the feed tells of a new task.
pub(super) fn event(new: &New<'_>, id: Uuid) -> feed::New {
    feed::New {
        campaign_id: Some(new.campaign_id),
        task_id: Some(id),
        session_id: None,
        kind: Kind::TaskQueued,
        data: json!({ "agent": new.agent.name, "instance": new.instance }),
    }
}

/// Who asked for a task that was just added, as a header of W3C Trace Context.
pub async fn set_traceparent(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    traceparent: &str,
) -> Result<(), Failed> {
    sqlx::query!("update dalsegno.tasks set traceparent = $2 where id = $1", id, traceparent)
        .execute(executor)
        .await
        .map(drop)
        .map_err(Failed::to("keep who asked for a task"))
}

/// What can be said of a question without the database.
pub(super) fn check(config: &Config, new: &New<'_>) -> Result<(), Error> {
    text::check("prompt", new.prompt, config.max_prompt_bytes)?;
    if !agents::is_name(new.instance) {
        return Err(Error::Instance(new.instance.to_owned()));
    }
    if let Some(key) = new.idempotency_key {
        let n_chars = key.chars().count();
        if !(1..=MAX_KEY_CHARS).contains(&n_chars) || key.contains('\0') {
            return Err(Error::Key { n_chars });
        }
    }
    if let Some(priority) = new.priority.filter(|priority| !(0..=MAX_PRIORITY).contains(priority)) {
        return Err(Error::Priority(priority));
    }
    new.links.check()?;
    let budgets = [new.budget.micros, new.budget.tokens];
    match budgets.into_iter().flatten().find(|budget| *budget <= 0) {
        Some(budget) => Err(Error::EmptyBudget(budget)),
        None => Ok(()),
    }
}

/// A task that could not run now or later is refused at the door. A look without a lock: the turn decides.
pub(super) async fn admit(conn: &mut PgConnection, campaign_id: Uuid) -> Result<(), Error> {
    let campaign = campaigns::get(&mut *conn, campaign_id).await?;
    if campaign.status == campaigns::Status::Closed {
        return Err(campaigns::Error::Closed(campaign.id).into());
    }
    if let Some(budget) = campaigns::budget(&mut *conn, campaign.id).await? {
        // One token or micro-unit: whether anything at all is left.
        let least = Amount { micros: 1, tokens: 1 };
        budget.limit.admit(Owner::Campaign, budget.spent, Amount::ZERO, least)?;
    }
    Ok(())
}

/// Every part with its length in front, so that no two questions share a byte stream.
fn asked(new: &New<'_>, mode: Mode) -> String {
    let mut hasher = Sha256::new();
    let limits = format!("{mode:?} {:?} {:?}", new.budget.micros, new.budget.tokens);
    let campaign = new.campaign_id.to_string();
    let links = new.links.words();
    let parts = [&campaign, &new.agent.name, new.instance, new.prompt, &limits];
    for part in parts.into_iter().chain(links.as_deref()) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The task that was added with a job. A retry may have given it another one since.
async fn added_with(conn: &mut PgConnection, job_id: i64) -> Result<Task, Error> {
    let id = sqlx::query_scalar!(
        "select id from dalsegno.tasks where (job_id = $1 and first_job_id is null) or first_job_id = $1",
        job_id,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Failed::to("find the task of an idempotency key"))?;
    get(conn, id.ok_or(Error::NoTaskOfJob(job_id))?).await
}

async fn insert(
    conn: &mut PgConnection,
    new: &New<'_>,
    id: Uuid,
    job_id: i64,
    now: DateTime<Utc>,
) -> Result<Task, Failed> {
    sqlx::query_as!(
        Task,
        r#"insert into dalsegno.tasks
                (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt,
                 added_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         returning id, campaign_id, agent, instance, session_mode as "session_mode: Mode", state as "state: State", prompt, result,
                   error, budget_micros, budget_tokens, spent_micros, spent_tokens, job_id, session_id, turn, created_at,
                   started_at, ended_at"#,
        id,
        new.campaign_id,
        job_id,
        now,
        new.budget.micros.or(new.agent.budget.micros),
        new.budget.tokens.or(new.agent.budget.tokens),
        mode_of(new) as Mode,
        new.agent.name,
        new.instance,
        new.prompt,
        new.added_by,
    )
    .fetch_one(conn)
    .await
    .map_err(Failed::to("store a task"))
}
