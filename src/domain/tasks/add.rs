//! Adding tasks: checks, job and event.

use std::ops::RangeInclusive;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Error, Links, RunTurn, Task, digest};
use crate::domain::agents::SessionMode as Mode;
use crate::{
    domain::{
        agents::{self, Agent, Node},
        amount::Limit,
        feed::{self, Kind},
        labels::Labels,
        parameters::{self, Parameters},
        result_schemas,
        task_files::attachments::{self, Limits, NewAttachment},
        text,
    },
    queue,
    settings::Checks,
};

/// The same limit as in `dalsegno.store_task`.
pub(super) const MAX_KEY_CHARS: usize = 195;
const DEFAULT_PRIORITY: i32 = 100;
pub(super) const MAX_ATTACHMENTS: usize = 100;
/// Times that an answer may take. A provider may need an hour for a batch, and a day at most.
const WITHIN_SECS: RangeInclusive<i32> = 3_600..=7 * 86_400;
/// Files are read as a whole, for each call that has them.
pub(super) const MAX_BYTES: u64 = 256_000_000;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub max_prompt_bytes: usize,
    /// Corrections that a task asks for if its answers do not match its result schema.
    pub max_corrections: u8,
    /// Files that a task is given.
    pub max_attachments: usize,
    /// Bytes of one of them.
    pub max_attachment_bytes: u64,
    /// Bytes of all attachments of a task.
    pub max_attachments_bytes: u64,
}

/// A task to add.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub campaign_id: Uuid,
    /// The agent, from the catalogue: a task for an unknown agent cannot be expressed.
    pub agent: &'a Agent,
    /// The agent's instance; `main` unless the agent has several.
    pub instance: &'a str,
    pub prompt: &'a str,
    /// The node, from the catalogue. `None`: the session stays at its node.
    pub node: Option<&'a Node>,
    /// The session mode. `None`: the one of the agent's file.
    pub session_mode: Option<Mode>,
    /// The budget. Missing limits come from the agent's file.
    pub budget: Limit,
    /// The idempotency key. The same request under the same key returns the same task, another request is a conflict.
    pub idempotency_key: Option<&'a str>,
    /// Priority; 0 is the most urgent.
    pub priority: Option<i32>,
    pub run_at: Option<DateTime<Utc>>,
    /// The author's name in the audit log.
    pub added_by: Option<&'a str>,
    /// Links to other tasks.
    pub links: Links<'a>,
    /// W3C Trace Context header that the task's turns are linked to.
    pub traceparent: Option<&'a str>,
    pub labels: Labels<'a>,
    /// Named values that its calls contain.
    pub parameters: Option<&'a Parameters>,
    /// The JSON Schema that the answer has to match. `None`: the one of the agent's file.
    pub result_schema: Option<&'a Value>,
    /// Files that it is given with its prompt, in order.
    pub attachments: &'a [NewAttachment],
    /// Seconds that the answer may take, from now or from `run_at`. `None`: no time is given.
    pub within_secs: Option<i32>,
}

impl<'a> New<'a> {
    /// Returns a task for the instance `main` of an agent, with defaults for everything else.
    pub fn for_agent(campaign_id: Uuid, agent: &'a Agent, prompt: &'a str) -> Self {
        Self {
            campaign_id,
            agent,
            instance: agents::MAIN,
            prompt,
            node: None,
            session_mode: None,
            budget: Limit::default(),
            idempotency_key: None,
            priority: None,
            run_at: None,
            added_by: None,
            links: Links::default(),
            traceparent: None,
            labels: Labels::default(),
            parameters: None,
            result_schema: None,
            attachments: &[],
            within_secs: None,
        }
    }

    pub(super) fn has_parameters(&self) -> bool {
        self.parameters.is_some_and(|parameters| !parameters.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddResult {
    pub task: Task,
    /// False if an earlier call with this idempotency key created the task.
    pub created: bool,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("tasks.max_prompt_bytes", self.max_prompt_bytes as u64, 1);
        if self.max_attachments > MAX_ATTACHMENTS {
            let message =
                format!("is {}, but must be at most {MAX_ATTACHMENTS}", self.max_attachments);
            checks.fail("tasks.max_attachments", message, "20, or 0 to accept none");
        }
        let sizes = [
            ("tasks.max_attachment_bytes", self.max_attachment_bytes),
            ("tasks.max_attachments_bytes", self.max_attachments_bytes),
        ];
        for (key, n_bytes) in sizes.into_iter().filter(|(_, n_bytes)| *n_bytes > MAX_BYTES) {
            checks.fail(key, format!("is {n_bytes}, but must be at most {MAX_BYTES}"), "10000000");
        }
    }

    pub fn attachment_limits(&self) -> Limits {
        Limits {
            max_files: self.max_attachments,
            max_file_bytes: self.max_attachment_bytes,
            max_task_bytes: self.max_attachments_bytes,
        }
    }
}

/// Returns the lane of a conversation.
pub fn lane(campaign_id: Uuid, agent: &str, instance: &str) -> String {
    format!("{}{agent}/{instance}", lanes_of(campaign_id))
}

/// Returns the prefix of all lanes of a campaign.
pub fn lanes_of(campaign_id: Uuid) -> String {
    format!("{campaign_id}/")
}

/// Builds the job that runs a task, without its idempotency key.
pub(super) fn job(new: &New<'_>, id: Uuid) -> (RunTurn, queue::Options) {
    let options = queue::Options {
        lane: Some(lane(new.campaign_id, &new.agent.name, new.instance)),
        group_key: Some(new.campaign_id.to_string()),
        priority: new.priority,
        run_at: new.run_at,
        // For people who inspect the job; not part of the comparison under a key.
        headers: Some(json!({ "task": id })),
        ..queue::Options::default()
    };
    (RunTurn { asked: digest::of(new) }, options)
}

pub(super) fn mode_of(new: &New<'_>) -> Mode {
    new.session_mode.unwrap_or(new.agent.session)
}

pub(super) fn priority_of(new: &New<'_>) -> i32 {
    new.priority.unwrap_or(DEFAULT_PRIORITY)
}

/// Checks that the queue accepts a priority.
pub(super) fn check_priority(priority: i32) -> Result<i16, Error> {
    let fits = i16::try_from(priority).ok().filter(|priority| *priority >= 0);
    fits.ok_or(Error::Priority(priority))
}

/// Returns the seconds of a time for an answer. [`check_within`] refuses one that is too long.
pub fn within_secs(period: TimeDelta) -> i32 {
    i32::try_from(period.num_seconds()).unwrap_or(i32::MAX)
}

/// Checks the time that an answer may take.
pub fn check_within(secs: i32) -> Result<(), Error> {
    if WITHIN_SECS.contains(&secs) { Ok(()) } else { Err(Error::Within(secs)) }
}

/// Builds the feed event of a new task.
pub(super) fn event(new: &New<'_>, id: Uuid) -> feed::New {
    feed::New {
        campaign_id: Some(new.campaign_id),
        task_id: Some(id),
        session_id: None,
        kind: Kind::TaskQueued,
        data: json!({ "agent": new.agent.name, "instance": new.instance }),
    }
}

/// Checks all that needs no database.
pub fn check_new(config: &Config, new: &New<'_>) -> Result<(), Error> {
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
    if let Some(priority) = new.priority {
        check_priority(priority)?;
    }
    new.links.check()?;
    new.labels.check()?;
    new.parameters.map_or(Ok(()), parameters::check)?;
    new.result_schema.map_or(Ok(()), result_schemas::check)?;
    attachments::check(&config.attachment_limits(), new.attachments)?;
    new.within_secs.map_or(Ok(()), check_within)?;
    let budgets = [new.budget.micros, new.budget.tokens];
    match budgets.into_iter().flatten().find(|budget| *budget <= 0) {
        Some(budget) => Err(Error::EmptyBudget(budget)),
        None => Ok(()),
    }
}
