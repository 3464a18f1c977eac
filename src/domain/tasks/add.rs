//! Taking a task in.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Error, Links, RunTurn, Task, digest};
use crate::domain::agents::SessionMode as Mode;
use crate::{
    domain::{
        agents::{self, Agent, Node},
        amount::Limit,
        feed::{self, Kind},
        labels::Labels,
        text,
    },
    queue,
    settings::Checks,
};

/// As `dalsegno.store_task` has it.
const MAX_KEY_CHARS: usize = 195;
/// What the queue takes.
const MAX_PRIORITY: i32 = 32_767;
const USUAL_PRIORITY: i32 = 100;

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
    /// Where in the work it belongs, from the catalogue. `None`: wherever the session stands.
    pub node: Option<&'a Node>,
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
    /// What its turns are linked to, as a header of W3C Trace Context.
    pub traceparent: Option<&'a str>,
    pub labels: Labels<'a>,
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
    format!("{}{agent}/{instance}", lanes_of(campaign_id))
}

/// What the names of all lanes of a campaign begin with.
pub fn lanes_of(campaign_id: Uuid) -> String {
    format!("{campaign_id}/")
}

/// The job that runs a task, without its idempotency key.
pub(super) fn job(new: &New<'_>, id: Uuid) -> (RunTurn, queue::Options) {
    let options = queue::Options {
        lane: Some(lane(new.campaign_id, &new.agent.name, new.instance)),
        group_key: Some(new.campaign_id.to_string()),
        priority: new.priority,
        run_at: new.run_at,
        // For whoever looks at the job; not part of what the key compares.
        headers: Some(json!({ "task": id })),
        ..queue::Options::default()
    };
    (RunTurn { asked: digest::of(new) }, options)
}

pub(super) fn mode_of(new: &New<'_>) -> Mode {
    new.session_mode.unwrap_or(new.agent.session)
}

pub(super) fn priority_of(new: &New<'_>) -> i32 {
    new.priority.unwrap_or(USUAL_PRIORITY)
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
    new.labels.check()?;
    let budgets = [new.budget.micros, new.budget.tokens];
    match budgets.into_iter().flatten().find(|budget| *budget <= 0) {
        Some(budget) => Err(Error::EmptyBudget(budget)),
        None => Ok(()),
    }
}
