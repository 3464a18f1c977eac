//! Tools to hand out tasks and to list them.

use std::sync::Arc;

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Caller, Refusal, Role,
    arguments::{bad_cursor, schema, short},
    change::{BeginResult, Change},
    pages::ToolAnswer,
    task_limits,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    Page,
    agents::{AgentInstance, Catalogue, MAIN},
    tasks::{self, BulkError, BulkTask, FanOut, Links, State, Task, TaskFilter},
    transaction,
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "dispatch",
        description: "Hands out tasks to other agents, who work on them in parallel, each in a conversation of its own. With `then`, end your \
                      turn afterwards: when every task has ended, you get `then` as a new task, with all results. Without it, \
                      wait_for_results shows what has arrived.",
        who: Access::LeadAndNamed,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |role| match role {
            Role::Operator => schema::<HandOut>(),
            Role::Agent | Role::Lead => schema::<HandOutAndGoOn>(),
        },
        run: |call| dispatch(call).boxed(),
    },
    Tool {
        name: "tasks_list",
        description: "Lists the tasks of the campaign that you may see, the newest first: their agents and states.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |role| match role {
            Role::Agent => schema::<OwnList>(),
            Role::Lead | Role::Operator => schema::<List>(),
        },
        run: |call| list(call).boxed(),
    },
];

const DEFAULT_TASKS: u32 = 20;
pub(super) const MAX_TASKS: u32 = 100;
/// Characters of a prompt or an error that a list shows.
const SHOWN_CHARS: usize = 300;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HandOut {
    /// One for each piece of work.
    tasks: Vec<NewTaskArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HandOutAndGoOn {
    /// One for each piece of work.
    tasks: Vec<NewTaskArgs>,
    /// Prompt for you when all of them have ended, for instance what you have to do with the results.
    then: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTaskArgs {
    /// Name of the agent that is to do it, or of another instance of one, such as `curator_2`.
    agent: String,
    /// Everything that the agent has to know and to do. It does not see your conversation.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnList {
    /// Only tasks in this state.
    state: Option<ListedState>,
    /// Maximum number of tasks; 20 unless you say otherwise.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only tasks for this agent, in any of its instances.
    agent: Option<String>,
    /// Only tasks in this state.
    state: Option<ListedState>,
    /// Maximum number of tasks; 20 unless you say otherwise.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListedState {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

async fn dispatch(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let HandOutAndGoOn { tasks: handed, then } = match call.caller {
        Caller::Turn(_) => call.read()?,
        Caller::Operator(_) => {
            let HandOut { tasks } = call.read()?;
            HandOutAndGoOn { tasks, then: None }
        }
    };
    let settings = &call.tools.settings;
    let most = usize::from(settings.mentions.max_fan_out);
    if handed.is_empty() || handed.len() > most {
        let n_tasks = handed.len();
        return Err(Refusal::of_text(format!(
            "nothing was handed out: `tasks` has {n_tasks} items, use 1 to {most} in one call (mentions.max_fan_out)"
        )));
    }
    let catalogue = settings.agents.current();
    let addressed = resolve_agents(&catalogue, &handed)?;
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let added_by = call.caller.label();
    let n_more = handed.len() + usize::from(then.is_some());
    let parent_id = task_limits::check_and_lock_parent(&call, &mut change, n_more).await?;
    let new = |(one, handed): (&AgentInstance<'_>, &NewTaskArgs)| {
        (one.agent.clone(), one.instance.to_owned(), handed.text.clone())
    };
    let drafts: Vec<_> = addressed.iter().zip(&handed).map(new).collect();
    let news: Vec<tasks::New<'_>> = drafts
        .iter()
        .map(|(agent, instance, text)| tasks::New {
            instance,
            added_by: Some(&added_by),
            links: Links { parent_id, ..Links::default() },
            ..tasks::New::for_agent(call.caller.campaign_id(), agent, text)
        })
        .collect();
    let (placed, continuation) = add(&call, &mut change, &news, then.as_deref()).await?;
    let told: Vec<Value> = placed
        .iter()
        .zip(&addressed)
        .map(|(placed, one)| {
            let name = catalogue.format_name(&one.agent.name, one.instance);
            json!({ "task_id": placed.id, "agent": name })
        })
        .collect();
    let ids = json!({ "tasks": placed.iter().map(|placed| placed.id).collect::<Vec<_>>(), "then": continuation });
    let hint = match continuation {
        Some(_) => {
            "You get a new task with all results when all of them have ended. End your turn now."
        }
        None => "wait_for_results shows their results.",
    };
    change.commit(ids, &json!({ "tasks": told, "next": hint })).await
}

/// Looks up the addressed agents. If one does not exist, nothing is handed out.
fn resolve_agents<'a>(
    catalogue: &'a Catalogue,
    handed: &'a [NewTaskArgs],
) -> Result<Vec<AgentInstance<'a>>, Refusal> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for one in handed {
        match catalogue.resolve_addressee(&one.agent, MAIN) {
            Ok(addressed) => known.push(addressed),
            Err(_) => unknown.push(format!("`{}`", short(&one.agent))),
        }
    }
    if unknown.is_empty() {
        return Ok(known);
    }
    let names: Vec<&str> = catalogue.agents().map(|agent| agent.name.as_str()).collect();
    Err(Refusal::of_text(format!(
        "nothing was handed out: unknown agent {}. Known agents are {}",
        unknown.join(", "),
        names.join(", ")
    )))
}

/// Adds the tasks, and the one that follows them.
async fn add(
    call: &Call<'_>,
    change: &mut Change<'_>,
    news: &[tasks::New<'_>],
    then: Option<&str>,
) -> Result<(Vec<BulkTask>, Option<Uuid>), Refusal> {
    let (config, now) = (&call.tools.settings.tasks, call.now());
    let (Caller::Turn(turn), Some(continuation)) = (call.caller, then) else {
        let campaign_id = call.caller.campaign_id();
        let placed = tasks::add_many(change.conn(), config, campaign_id, news, now).await;
        return Ok((placed.map_err(not_added)?, None));
    };
    let parent = tasks::get(change.conn(), turn.task_id).await?;
    let what = FanOut {
        parent: &parent,
        agent: &turn.agent,
        children: news,
        continuation,
        idempotency_key: None,
        added_by: Some(&turn.reader()),
    };
    let fanned_out = tasks::fan_out(change.conn(), config, &what, now).await.map_err(not_added)?;
    Ok((fanned_out.children, Some(fanned_out.continuation.id)))
}

fn not_added(error: BulkError) -> Refusal {
    match error {
        BulkError::All(error) => error.into(),
        BulkError::Items(mut wrong) => match wrong.pop() {
            Some((place, error)) => match Refusal::from(error) {
                Refusal::Text(words) => {
                    Refusal::of_text(format!("nothing was handed out: task {}: {words}", place + 1))
                }
                other => other,
            },
            None => Refusal::of_text("nothing was handed out"),
        },
    }
}

async fn list(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let List { agent, state, limit } = match call.caller.role() {
        Role::Lead | Role::Operator => call.read()?,
        Role::Agent => {
            let OwnList { state, limit } = call.read()?;
            List { agent: None, state, limit }
        }
    };
    let limit = i64::from(limit.unwrap_or(DEFAULT_TASKS).clamp(1, MAX_TASKS));
    let after = match &call.place {
        Some(place) => Some(place.parse().map_err(|_| bad_cursor())?),
        None => None,
    };
    let (page, state) = (Page { after, limit: limit + 1 }, state.map(ListedState::state));
    let campaign_id = Some(call.caller.campaign_id());
    let mut tx = call.begin().await?;
    let found = match call.caller {
        Caller::Turn(turn) if !turn.is_lead() => {
            let own = (turn.campaign_id, turn.agent.name.as_str(), turn.instance.as_str());
            tasks::of_conversation(&mut *tx, own, state, page).await?
        }
        Caller::Turn(_) | Caller::Operator(_) => {
            let filter = TaskFilter { campaign_id, agent, state, ..TaskFilter::default() };
            tasks::list(&mut tx, &filter, page).await?
        }
    };
    transaction::commit(tx).await?;
    let catalogue = call.tools.settings.agents.current();
    let shown = &found[..found.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let next = shown.last().filter(|_| found.len() > shown.len()).map(|last| last.id.to_string());
    let lines: Vec<Value> = shown.iter().map(|task| line(task, &catalogue)).collect();
    ToolAnswer::list(&json!({ "tasks": lines }), next)
}

fn line(task: &Task, catalogue: &Arc<Catalogue>) -> Value {
    json!({
        "task_id": task.id, "agent": catalogue.format_name(&task.agent, &task.instance), "state": task.state,
        "asked_at": task.created_at, "ended_at": task.ended_at, "asked": beginning(&task.prompt),
        "error": task.error.as_deref().map(beginning),
    })
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

impl ListedState {
    fn state(self) -> State {
        match self {
            Self::Queued => State::Queued,
            Self::Running => State::Running,
            Self::Done => State::Done,
            Self::Failed => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}
