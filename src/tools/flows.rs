//! Tools for flows: tasks that wait for each other, made from a template.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Refusal,
    arguments::{NoArguments, schema, short},
    change::{BeginResult, Change},
    pages::ToolAnswer,
    task_limits,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::flows::{self, InputValue, Inputs, Template, Templates};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "flow_templates_list",
        description: "Lists the flow templates that can be started, with their inputs.",
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
    let templates = load(&call).await?;
    let lines: Vec<Value> = templates.all().map(line).collect();
    let broken: Vec<&str> = templates.broken().map(|broken| broken.name.as_str()).collect();
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
    json!({
        "template": template.name, "about": template.description, "inputs": inputs, "steps": steps.collect::<Vec<_>>(),
    })
}

async fn start(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: Start = call.read()?;
    let templates = load(&call).await?;
    let template = templates.get(&asked.template).map_err(|error| match error {
        flows::Error::NoTemplate { .. } => {
            let names: Vec<&str> = templates.all().map(|template| template.name.as_str()).collect();
            let (shown, names) = (short(&asked.template), names.join(", "));
            Refusal::of_text(format!(
                "unknown flow template `{shown}`. Known flow templates: {names}"
            ))
        }
        error => error.into(),
    })?;
    let inputs: Inputs =
        asked.inputs.into_iter().map(|(name, given)| (name, given.into())).collect();
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let n_more = flows::n_tasks(template, &inputs)?;
    let parent_id = task_limits::check_and_lock_parent(&call, &mut change, n_more).await?;
    let (settings, added_by) = (&call.tools.settings, call.caller.label());
    let new = flows::New {
        campaign_id: call.caller.campaign_id(),
        template,
        inputs: &inputs,
        added_by: Some(&added_by),
        parent_id,
    };
    let catalogue = settings.agents.current();
    let now = call.now();
    let flow = flows::start(change.conn(), &settings.tasks, &catalogue, &new, now).await?;
    let told = json!({ "flow_id": flow.id, "template": flow.template, "tasks": flow.tasks });
    change.commit(json!({ "flow_id": flow.id }), &told).await
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
