//! Everything about a task that does not depend on its session: who is asked, with which words, at what price.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Error, Refused,
    failover::{self, Failover},
    joined, offer,
};
use crate::{
    context::results,
    domain::{
        agents::{Agent, Catalogue, Node, Skill},
        busy_models::BusyModel,
        campaigns::Campaign,
        failovers::{Side, Standing},
        memory,
        tasks::{self, Predecessor, Task},
        turn_phases,
        turn_phases::{AboutUser, Beside, Wanted},
    },
    jobs::{Services, route::Route},
    transcript::ToolSpec,
};

pub(super) struct Assignment<'a> {
    pub(super) task: Task,
    pub(super) agent: Arc<Agent>,
    /// As it is throughout this run, whatever becomes of the files meanwhile.
    pub(super) catalogue: Arc<Catalogue>,
    /// Of the agent's prompt, and for the lead of the roster too.
    pub(super) prompt_hash: String,
    pub(super) skills: Vec<Arc<Skill>>,
    /// Where in the work the task belongs.
    pub(super) node: Option<Arc<Node>>,
    pub(super) campaign: Campaign,
    /// Whether anything limits what the turn may cost.
    pub(super) is_limited: bool,
    pub(super) route: Route<'a>,
    /// What the model may call in this turn, where it is this service that carries it out.
    pub(super) tools: Vec<Arc<ToolSpec>>,
    pub(super) failover: Option<Failover>,
    /// The model, if calls of it were refused since it last answered.
    pub(super) busy: Option<BusyModel>,
    /// Since when the task waits for its provider, if it does.
    pub(super) busy_since: Option<DateTime<Utc>>,
    pub(super) traceparent: Option<String>,
    pub(super) blackboard: Option<Blackboard>,
    /// What holds for all agents of the campaign, as it was when the task was read.
    pub(super) edicts: Vec<memory::Standing>,
    /// What it is told of whom the campaign works for, as it was then.
    pub(super) facts: Option<AboutUser>,
    /// What the tasks came to that this one has waited for.
    pub(super) predecessors: Vec<Predecessor>,
    /// The id of the entry that tells it.
    pub(super) results_entry: Uuid,
    /// The last place of the campaign's board when the task was read; 0 while nobody has posted.
    pub(super) last_post: i64,
    /// The post that the task came from.
    pub(super) asked_in: Option<Uuid>,
    /// The agent that said it, if an agent did.
    pub(super) asked_by: Option<String>,
}

/// What the agent is shown of its campaign's blackboard, as it was when the task was read.
pub(super) struct Blackboard {
    pub(super) version: i64,
    pub(super) json: String,
}

/// What is stored of it.
pub(super) struct Read {
    wanted: Wanted,
    predecessors: Vec<Predecessor>,
    standing: Option<Standing>,
}

impl Assignment<'_> {
    /// What an attempt of this task stores in front of its call.
    pub(super) fn own_entries(&self) -> [Uuid; 2] {
        [self.task.id, self.results_entry]
    }
}

impl Read {
    /// The task, if somebody has asked it to stop.
    pub(super) fn asked_to_stop(&self) -> Option<&Task> {
        self.wanted.is_asked_to_stop.then_some(&self.wanted.task)
    }

    /// The task, if its agent is paused.
    pub(super) fn paused(&self) -> Option<&Task> {
        self.wanted.is_paused.then_some(&self.wanted.task)
    }

    /// The task and its flow, if that is paused and the task has not begun.
    pub(super) fn paused_flow(&self) -> Option<(&Task, Uuid)> {
        self.wanted.paused_flow.map(|flow| (&self.wanted.task, flow))
    }
}

/// The task of a job, if it still has to be done, and its campaign.
pub(super) async fn read(pool: &PgPool, services: &Services, job_id: i64) -> Result<Read, Error> {
    let mut conn = pool.acquire().await.map_err(Error::undone)?;
    let catalogue = services.library.current();
    let beside = Beside {
        readers: &catalogue.blackboard_readers(),
        edicts_max_bytes: services.memory.edicts_max_bytes,
        told_facts: &catalogue.told_facts(),
        facts_max_bytes: services.facts.told_max_bytes,
        now: services.clock.now(),
    };
    let wanted = turn_phases::wanted(&mut *conn, job_id, beside).await?;
    if wanted.task.ended_at.is_some() {
        return Err(Error::Ended);
    }
    let standing = failover::standing(&mut conn, services, &wanted.task).await?;
    let predecessors = match wanted.has_waited {
        true => {
            let max_chars = i32::try_from(joined::MOST_CHARS).unwrap_or(i32::MAX);
            tasks::predecessors(&mut *conn, wanted.task.id, max_chars).await?
        }
        false => Vec::new(),
    };
    Ok(Read { wanted, predecessors, standing })
}

impl<'a> Assignment<'a> {
    /// Asks the provider for the model's window where nobody knows it yet.
    pub(super) async fn of(
        services: &'a Services,
        Read { wanted, predecessors, standing }: Read,
        cancel: &CancellationToken,
    ) -> Result<Self, (Task, Refused)> {
        let Wanted {
            task,
            campaign,
            limit,
            node,
            blackboard,
            edicts,
            facts,
            traceparent,
            busy_since,
            busy_models,
            last_post,
            post_id,
            was_retried,
            asked_by,
            ..
        } = wanted;
        let failover = Failover::of(&services.agents, standing, services.clock.now());
        let catalogue = services.library.current();
        let agent = match catalogue.agent(&task.agent) {
            Ok(agent) => Arc::clone(agent),
            Err(error) => return Err((task, error.into())),
        };
        let node = match node.as_deref().map(|node| catalogue.node(node)).transpose() {
            Ok(node) => node.map(Arc::clone),
            Err(error) => return Err((task, error.into())),
        };
        let side = if agent.fallback.is_some() { failover.side } else { Side::First };
        let route = match Route::of_agent(services, &agent, side, cancel).await {
            Ok(route) => route,
            Err(why) => return Err((task, Refused::for_good(why))),
        };
        let is_own =
            |busy: &BusyModel| busy.provider == route.provider_name && busy.model == route.model;
        let limits = [limit.micros, limit.tokens, task.budget_micros, task.budget_tokens];
        Ok(Self {
            failover: agent.fallback.is_some().then_some(failover),
            busy: busy_models.into_iter().find(is_own),
            busy_since,
            skills: catalogue.skills_of(&agent),
            blackboard: blackboard.and_then(|written| Blackboard::shown_to(&agent, &written)),
            edicts,
            facts,
            prompt_hash: catalogue.prompt_hash(&agent, &task.instance),
            node,
            is_limited: limits.iter().any(Option::is_some),
            results_entry: results::entry_id(task.id, was_retried.then_some(task.job_id)),
            tools: offer::tools(services, &agent, &task, &route),
            task,
            agent,
            catalogue,
            campaign,
            route,
            traceparent,
            predecessors,
            last_post,
            asked_in: post_id,
            asked_by,
        })
    }
}

impl Blackboard {
    fn shown_to(agent: &Agent, written: &turn_phases::Written) -> Option<Self> {
        let shown = agent.grants.blackboard.readable(&written.document)?;
        let is_empty = shown.as_object().is_some_and(serde_json::Map::is_empty);
        (!is_empty).then(|| Self { version: written.version, json: shown.to_string() })
    }
}
