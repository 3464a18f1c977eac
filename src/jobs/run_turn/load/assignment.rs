//! The assignment of a turn: everything about a task that does not depend on its session.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    context::{AttachmentRules, results},
    domain::{
        agents::{self, Agent, Catalogue, Node, Skill},
        amount::{Owner, Refusal},
        busy_models::BusyModel,
        campaigns::Campaign,
        failovers::{SkippedEntry, describe_last_resort},
        memory,
        parameters::Parameters,
        rate_limits::Grant,
        result_schemas,
        task_files::attachments,
        tasks::{self, Predecessor, Task},
        turn_phases::{self, AboutUser, Correction, LoadParams, TurnInput},
    },
    jobs::{
        Services,
        route::Route,
        run_turn::{
            error::{BeginRefusal, Error},
            load::{
                chain::{self, Chain, ChainRecord},
                prompt::TurnPrompt,
                step_fields, tools,
            },
        },
    },
    transcript::{Attachment, ToolSpec},
};

pub struct Assignment<'a> {
    pub task: Task,
    pub prompt: TurnPrompt,
    /// The correction that the prompt asks for.
    pub correction: Option<Correction>,
    /// The JSON Schema that the answer has to match: that of the task, or else of its agent.
    pub result_schema: Option<Value>,
    pub agent: Arc<Agent>,
    /// The agents' files as this run uses them throughout, even if they change meanwhile.
    pub catalogue: Arc<Catalogue>,
    /// Hash of the agent's prompt; for the lead, of the roster, too.
    pub prompt_hash: String,
    pub skills: Vec<Arc<Skill>>,
    /// The node that the task names.
    pub node: Option<Arc<Node>>,
    pub campaign: Campaign,
    /// True if a budget limits the turn.
    pub is_limited: bool,
    /// The budgets of the agent, the user and the day.
    pub budgets: Vec<i64>,
    pub route: Route<'a>,
    /// Tools that this service offers to the model and runs itself.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The chain of an agent with several models.
    pub chain: Option<Chain>,
    /// The model, if its provider has refused calls since its last answer.
    pub busy: Option<BusyModel>,
    /// Start of the task's wait for its provider.
    pub busy_since: Option<DateTime<Utc>>,
    /// Grant of the rate limits, if the task has waited for one.
    pub limit_grant: Option<Grant>,
    pub traceparent: Option<String>,
    /// The parameters that hold for the task.
    pub parameters: Option<CallParameters>,
    pub blackboard: Option<Blackboard>,
    /// Valid edicts of the campaign, as of when the task was read.
    pub edicts: Vec<memory::ValidEdict>,
    /// Facts about the campaign's user, as of then.
    pub facts: Option<AboutUser>,
    /// Files of the task. None for a correction: the prompt before it has them.
    pub attachments: Vec<Arc<Attachment>>,
    /// Files that the model accepts.
    pub attachment_rules: AttachmentRules,
    /// Results of the tasks that this one has waited for.
    pub predecessors: Vec<Predecessor>,
    /// Id of the transcript's entry with these results.
    pub results_entry: Uuid,
    /// Last place of the campaign's board when the task was read; 0 for an empty board.
    pub last_post: i64,
    /// The moment until which the answer may take its time.
    pub answer_by: Option<DateTime<Utc>>,
    /// The post that the task came from.
    pub asked_in: Option<Uuid>,
    /// The agent that wrote the post, if an agent did.
    pub asked_by: Option<String>,
}

/// The part of the campaign's blackboard that the agent may read, as of when the task was read.
pub struct Blackboard {
    pub version: i64,
    pub json: String,
}

/// Parameters of campaign and task together.
pub struct CallParameters {
    /// The version of the campaign, the task, or both.
    pub source: String,
    pub json: String,
}

/// The rows that were read for a task.
pub struct TaskRecord {
    wanted: TurnInput,
    predecessors: Vec<Predecessor>,
    chain: ChainRecord,
    attachments: Vec<Arc<Attachment>>,
    /// The prompt of the task with the fields of earlier steps, or the reason why one is missing.
    prompt: Result<String, String>,
}

/// Characters of one predecessor's result: the length of a long report.
pub const PREDECESSOR_MAX_CHARS: usize = 16_000;

impl Assignment<'_> {
    /// Completes the refusal of a budget: the agent's file says what the budget of a task does.
    pub fn complete_refusal(&self, refusal: Refusal) -> Refusal {
        match refusal.owner {
            Owner::Task(_) => Refusal { on_limit: self.agent.on_limit, ..refusal },
            _ => refusal,
        }
    }

    /// Adds the other entries of the chain to the reason of a wait or failure.
    pub fn name_skipped(&self, refused: BeginRefusal) -> BeginRefusal {
        let Some(chain) = self.chain.as_ref().filter(|chain| chain.choice.is_last_resort) else {
            return refused;
        };
        let others = describe_last_resort(&chain.chosen().name, &chain.choice.skipped);
        let why = format!("{}; {others}", refused.why);
        BeginRefusal { why, ..refused }
    }

    /// Ids of the entries that an attempt of this task stores before its call.
    pub fn own_entries(&self) -> [Uuid; 2] {
        [self.prompt.entry_id, self.results_entry]
    }
}

impl TaskRecord {
    /// Returns the task, if its cancellation was requested.
    pub fn task_to_stop(&self) -> Option<&Task> {
        self.wanted.is_asked_to_stop.then_some(&self.wanted.task)
    }

    /// Returns the task, if the call of its last turn was sent as a batch.
    pub fn batched_task(&self) -> Option<&Task> {
        self.wanted.has_batch.then_some(&self.wanted.task)
    }

    /// Returns the task, if its agent is paused.
    pub fn paused_task(&self) -> Option<&Task> {
        self.wanted.is_paused.then_some(&self.wanted.task)
    }

    /// Returns the task and its flow, if the flow is paused and the task has not begun.
    pub fn paused_flow(&self) -> Option<(&Task, Uuid)> {
        self.wanted.paused_flow.map(|flow| (&self.wanted.task, flow))
    }
}

/// Reads the task of a job, unless it has ended, and its campaign.
pub async fn read(
    conn: &mut PgConnection,
    services: &Services,
    job_id: i64,
) -> Result<TaskRecord, Error> {
    // The rest of the turn has it, too, or a later one.
    let catalogue = services.library.latest().await;
    let beside = LoadParams {
        readers: &catalogue.blackboard_readers(),
        edicts_max_bytes: services.memory.edicts_max_bytes,
        told_facts: &catalogue.agents_with_facts(),
        facts_max_bytes: services.facts.told_max_bytes,
        has_rate_limits: services.rate_limits.has_rules(),
        now: services.clock.now(),
    };
    let wanted = turn_phases::load_task_of_job(&mut *conn, job_id, beside).await?;
    if wanted.task.ended_at.is_some() {
        return Err(Error::Ended);
    }
    let chain = chain::load(&mut *conn, services, &wanted.task).await?;
    let prompt = step_fields::prompt_of(&mut *conn, &wanted).await?;
    // A correction follows the turn that was told them.
    let predecessors = match wanted.has_waited && wanted.correction.is_none() {
        true => {
            let max_chars = i32::try_from(PREDECESSOR_MAX_CHARS).unwrap_or(i32::MAX);
            tasks::predecessors(&mut *conn, wanted.task.id, max_chars).await?
        }
        false => Vec::new(),
    };
    let attachments = match wanted.has_attachments && wanted.correction.is_none() {
        true => {
            let id = wanted.task.id;
            attachments::load(conn, &[id]).await?.remove(&id).unwrap_or_default()
        }
        false => Vec::new(),
    };
    Ok(TaskRecord { wanted, predecessors, chain, attachments, prompt })
}

impl<'a> Assignment<'a> {
    /// Builds the assignment. Asks the provider for the model's window, if it is unknown. `refused`: entries of the agent's chain that
    /// have refused the turn already. `begun_on`: provider and model of a turn that has begun.
    pub async fn of(
        services: &'a Services,
        TaskRecord { wanted, predecessors, chain, attachments, prompt }: TaskRecord,
        refused: &[SkippedEntry],
        begun_on: Option<(&str, &str)>,
        cancel: &CancellationToken,
    ) -> Result<Self, (Task, BeginRefusal)> {
        let TurnInput {
            task,
            campaign,
            limit,
            has_soft_limit,
            budgets,
            node,
            parameters,
            blackboard,
            edicts,
            facts,
            traceparent,
            busy_since,
            busy_models,
            limit_grant,
            last_post,
            post_id,
            was_retried,
            asked_by,
            result_schema,
            correction,
            answer_by,
            ..
        } = wanted;
        let catalogue = services.library.current();
        let agent = match catalogue.agent(&task.agent) {
            Ok(agent) => Arc::clone(agent),
            Err(error) => return Err((task, error.into())),
        };
        let text = match prompt {
            Ok(text) => text,
            Err(why) => return Err((task, BeginRefusal::for_good(why))),
        };
        let result_schema = result_schema.or_else(|| agent.result_schema.clone());
        if let Some(Err(error)) = result_schema.as_ref().map(result_schemas::check) {
            return Err((task, BeginRefusal::for_good(error.to_string())));
        }
        let prompt = TurnPrompt::of(&task, text, correction.as_ref());
        let node = match node.as_deref().map(|node| catalogue.node(node)).transpose() {
            Ok(node) => node.map(Arc::clone),
            Err(error) => return Err((task, error.into())),
        };
        let now = services.clock.now();
        let chain = Chain::of(services, &agent, chain, (&busy_models, refused), now);
        let (chain, at) = match begun_on.map(|begun_on| place_in_chain(services, &agent, begun_on))
        {
            None => {
                let at = chain.as_ref().map_or(0, |chain| chain.choice.at);
                (chain, at)
            }
            Some(Some(at)) => (chain.map(|chain| chain.on_entry(at)), at),
            Some(None) => {
                let why = "the agent's file no longer names the model that the turn has begun on";
                return Err((task, BeginRefusal::for_good(why)));
            }
        };
        let route = match Route::of_agent(services, &agent, at, cancel).await {
            Ok(route) => route,
            Err(why) => return Err((task, BeginRefusal::for_good(why))),
        };
        let is_own =
            |busy: &BusyModel| busy.provider == route.provider_name && busy.model == route.model;
        let can_read = agent.grants.can_read_files();
        let attachment_rules = route.provider.attachment_rules(&route.model, can_read);
        let limits = [limit.micros, limit.tokens, task.budget_micros, task.budget_tokens];
        Ok(Self {
            chain,
            busy: busy_models.into_iter().find(is_own),
            busy_since,
            limit_grant,
            skills: catalogue.skills_of(&agent),
            parameters: CallParameters::of(&campaign, parameters),
            blackboard: blackboard.and_then(|written| Blackboard::for_agent(&agent, &written)),
            edicts,
            facts,
            prompt_hash: catalogue.prompt_hash(&agent, &task.instance),
            node,
            is_limited: has_soft_limit || !budgets.is_empty() || limits.iter().any(Option::is_some),
            budgets,
            results_entry: results::entry_id(task.id, was_retried.then_some(task.job_id)),
            // A correction only writes the answer again.
            tools: match prompt.is_correction {
                true => Vec::new(),
                false => tools::list_offered(services, &agent, &task, &route),
            },
            task,
            prompt,
            correction,
            result_schema,
            agent,
            catalogue,
            campaign,
            route,
            traceparent,
            attachments,
            attachment_rules,
            predecessors,
            last_post,
            answer_by,
            asked_in: post_id,
            asked_by,
        })
    }
}

/// Finds the entry of an agent's chain with this provider and model.
fn place_in_chain(
    services: &Services,
    agent: &Agent,
    (provider, model): (&str, &str),
) -> Option<usize> {
    let is_same = |(of, name): (agents::Provider, Option<String>)| {
        of.as_str() == provider && name.as_deref() == Some(model)
    };
    match agent.chain.is_empty() {
        true => is_same(services.route(agent)).then_some(0),
        false => agent.chain.iter().position(|entry| is_same(services.entry_route(entry))),
    }
}

impl CallParameters {
    /// Merges the parameters. Those of the task win.
    fn of(campaign: &Campaign, of_task: Parameters) -> Option<Self> {
        let has_task = !of_task.is_empty();
        let mut all = campaign.parameters.0.clone();
        all.retain(|name, _| !of_task.contains_key(name));
        let source = match (all.is_empty(), has_task) {
            (true, false) => return None,
            (true, true) => "task".to_owned(),
            (false, false) => format!("version {}", campaign.version),
            (false, true) => format!("version {}, task", campaign.version),
        };
        all.extend(of_task);
        Some(Self { source, json: Value::Object(all).to_string() })
    }
}

impl Blackboard {
    fn for_agent(agent: &Agent, written: &turn_phases::BlackboardVersion) -> Option<Self> {
        let shown = agent.grants.blackboard.readable_parts(&written.document)?;
        let is_empty = shown.as_object().is_some_and(serde_json::Map::is_empty);
        (!is_empty).then(|| Self { version: written.version, json: shown.to_string() })
    }
}
