//! Tools for flows: tasks that wait for each other, made from a template.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Caller, Refusal,
    arguments::{NoArguments, schema, short},
    change::{BeginResult, Change},
    pages::ToolAnswer,
    task_limits,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    flows::{self, InputValue, Inputs, Template, Templates},
    tasks,
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "flow_templates_list",
        description: "Lists the flow templates that you may start, with their inputs.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<NoArguments>(),
        run: |call| list(call).boxed(),
    },
    Tool {
        name: "flows_start",
        description: "Starts a flow from a template: adds all its tasks at once. Each task runs when the tasks that it depends on have ended.",
        who: Access::LeadAndNamed,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<Start>(),
        run: |call| start(call).boxed(),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// Name of the flow template; flow_templates_list lists them.
    template: String,
    /// Each input by its name: a text, or a list of texts where flow_templates_list says so.
    inputs: BTreeMap<String, TextOrList>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

async fn list(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    let (templates, granted) = (load(&call).await?, GrantedTemplates::of(&call).await?);
    let lines: Vec<Value> =
        templates.all().filter(|template| granted.has(&template.name)).map(line).collect();
    let broken = templates.broken().map(|broken| broken.name.as_str());
    let broken: Vec<&str> = broken.filter(|name| granted.has(name)).collect();
    match broken.is_empty() {
        true => ToolAnswer::json(&json!({ "flow_templates": lines })),
        false => ToolAnswer::json(&json!({ "flow_templates": lines, "cannot_be_started": broken })),
    }
}

fn line(template: &Template) -> Value {
    let inputs: Vec<Value> = template
        .inputs
        .iter()
        .map(|input| {
            let kind = if input.is_list { "list of texts" } else { "text" };
            json!({ "name": input.name, "about": input.about, "kind": kind })
        })
        .collect();
    let steps = template.steps.iter().map(|step| json!({ "step": step.name, "agent": step.agent }));
    let improvement = template.improvement.as_ref().map(|phase| &phase.agent);
    json!({
        "template": template.name, "about": template.description, "inputs": inputs, "steps": steps.collect::<Vec<_>>(),
        "improvement": improvement,
    })
}

async fn start(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: Start = call.read()?;
    let (templates, granted) = (load(&call).await?, GrantedTemplates::of(&call).await?);
    let template = granted.find(&templates, &asked.template)?;
    let inputs: Inputs =
        asked.inputs.into_iter().map(|(name, given)| (name, given.into())).collect();
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let catalogue = call.tools.settings.agents.current();
    let n_more = flows::n_tasks(&catalogue, template, &inputs)?;
    let parent_id = task_limits::check_and_lock_parent(&call, &mut change, n_more).await?;
    let (settings, added_by) = (&call.tools.settings, call.caller.label());
    let new = flows::New {
        campaign_id: call.caller.campaign_id(),
        template,
        inputs: &inputs,
        added_by: Some(&added_by),
        parent_id,
    };
    let now = call.now();
    let flow = flows::start(change.conn(), &settings.tasks, &catalogue, &new, now).await?;
    let told = json!({ "flow_id": flow.id, "template": flow.template, "tasks": flow.tasks });
    change.commit(json!({ "flow_id": flow.id }), &told).await
}

/// The flow templates that the caller may start.
struct GrantedTemplates {
    /// `None`: all.
    names: Option<Vec<String>>,
}

impl GrantedTemplates {
    /// Reads the list of the turn's task; without one, the list of its agent's file.
    async fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let Caller::Turn(turn) = call.caller else { return Ok(Self { names: None }) };
        let of_task = tasks::flow_templates(&call.tools.pool, turn.task_id).await?;
        Ok(Self { names: of_task.or_else(|| turn.agent.grants.flows.clone()) })
    }

    fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|granted| granted == name))
    }

    fn find<'t>(&self, templates: &'t Templates, name: &str) -> Result<&'t Template, Refusal> {
        match templates.get(name) {
            Ok(template) if self.has(name) => Ok(template),
            Err(error) if self.has(name) && !matches!(error, flows::Error::NoTemplate { .. }) => {
                Err(error.into())
            }
            found => {
                let known = templates.all().map(|template| template.name.as_str());
                let known: Vec<&str> = known.filter(|name| self.has(name)).collect();
                let (shown, what) =
                    (short(name), if found.is_ok() { "not granted" } else { "unknown" });
                Err(Refusal::of_text(match known.is_empty() {
                    true => {
                        format!("flow template `{shown}` is {what}. This task may start no flow")
                    }
                    false => format!(
                        "flow template `{shown}` is {what}. Flow templates that you may start: {}",
                        known.join(", ")
                    ),
                }))
            }
        }
    }
}

async fn load(call: &Call<'_>) -> Result<Templates, Refusal> {
    let settings = &call.tools.settings;
    let loaded = Templates::load_in_thread(&settings.flows, settings.agents.current()).await;
    Ok(loaded.map_err(flows::Error::from)?)
}

impl From<TextOrList> for InputValue {
    fn from(given: TextOrList) -> Self {
        match given {
            TextOrList::Text(text) => Self::Text(text),
            TextOrList::List(items) => Self::List(items),
        }
    }
}
