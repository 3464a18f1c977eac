//! Starting a flow: from a template to tasks.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Flow, MAX_TASKS, Step, Template, get, template::placeholders};
use crate::domain::{
    StatementError,
    agents::{Catalogue, SessionMode as Mode},
    amount::Limit,
    feed, ids,
    tasks::{self, BulkError, FlowStep, Links, OnFailure, StepField, TaskLink},
};

/// The inputs of a flow, by name.
pub type Inputs = BTreeMap<String, InputValue>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(as = FlowInputValue)]
pub enum InputValue {
    Text(String),
    List(Vec<String>),
}

#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub campaign_id: Uuid,
    pub template: &'a Template,
    pub inputs: &'a Inputs,
    pub added_by: Option<&'a str>,
    /// The task that starts the flow, if one does. Cancelling that task cancels the flow.
    pub parent_id: Option<Uuid>,
}

/// A task before it is added.
pub(super) struct Draft<'a> {
    pub step: &'a str,
    pub agent: &'a str,
    pub instance: String,
    pub node: Option<&'a str>,
    pub session: Option<Mode>,
    pub on_failure: OnFailure,
    pub prompt: String,
    /// The places of the prompt that stand for fields of earlier results.
    pub fields: Option<Value>,
    pub result_schema: Option<&'a Value>,
    pub within_secs: Option<i32>,
    pub after: Vec<TaskLink>,
}

/// Counts the tasks that a flow would have.
pub fn n_tasks(
    catalogue: &Catalogue,
    template: &Template,
    inputs: &Inputs,
) -> Result<usize, Error> {
    check(template, inputs)?;
    let of_step = |step: &Step| {
        let items = step.each.as_ref().and_then(|each| inputs.get(each));
        items.map_or(1, |items| items.items().len())
    };
    let mut n_tasks = template.steps.iter().map(of_step).sum();
    if template.improvement.is_some() && n_tasks <= MAX_TASKS {
        n_tasks = drafts(catalogue, template, inputs).len();
    }
    if n_tasks > MAX_TASKS { Err(Error::TooMany(n_tasks)) } else { Ok(n_tasks) }
}

/// A step of a flow that is not started, with the first of its tasks.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    pub step: String,
    pub tasks: i64,
    pub agent: String,
    pub instance: String,
    pub node: Option<String>,
    pub session: Option<Mode>,
    pub prompt: String,
}

/// Lists the steps that a flow would have, in the order of the template.
pub fn plan(
    catalogue: &Catalogue,
    template: &Template,
    inputs: &Inputs,
) -> Result<Vec<PlannedStep>, Error> {
    n_tasks(catalogue, template, inputs)?;
    let mut planned: Vec<PlannedStep> = Vec::new();
    for draft in drafts(catalogue, template, &with_lists(template, inputs)) {
        match planned.iter_mut().find(|it| it.step == draft.step && it.agent == draft.agent) {
            Some(step) => step.tasks += 1,
            None => planned.push(PlannedStep {
                step: draft.step.to_owned(),
                tasks: 1,
                agent: draft.agent.to_owned(),
                instance: draft.instance,
                node: draft.node.map(str::to_owned),
                session: draft.session,
                prompt: draft.prompt,
            }),
        }
    }
    Ok(planned)
}

/// Adds all tasks of a flow, each waiting for those of the steps before it. After an error the caller rolls back.
pub async fn start(
    conn: &mut PgConnection,
    config: &tasks::Config,
    catalogue: &Catalogue,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<Flow, Error> {
    n_tasks(catalogue, new.template, new.inputs)?;
    let inputs = with_lists(new.template, new.inputs);
    let drafts = drafts(catalogue, new.template, &inputs);
    let id = ids::new_at(now);
    let mut news = Vec::with_capacity(drafts.len());
    for (place, draft) in (0..).zip(&drafts) {
        news.push(tasks::New {
            campaign_id: new.campaign_id,
            agent: catalogue.agent(draft.agent)?,
            instance: &draft.instance,
            node: draft.node.map(|node| catalogue.node(node)).transpose()?.map(AsRef::as_ref),
            prompt: &draft.prompt,
            session_mode: draft.session,
            budget: Limit::default(),
            idempotency_key: None,
            priority: None,
            run_at: None,
            added_by: new.added_by,
            traceparent: None,
            labels: Default::default(),
            parameters: None,
            result_schema: draft.result_schema,
            attachments: &[],
            within_secs: draft.within_secs,
            links: Links {
                depends_on: &draft.after,
                on_failure: draft.on_failure,
                parent_id: new.parent_id,
                flow: Some(FlowStep {
                    flow_id: id,
                    step: draft.step,
                    place,
                    fields: draft.fields.as_ref(),
                }),
                ..Links::default()
            },
        });
    }
    crate::domain::campaigns::get(&mut *conn, new.campaign_id).await?;
    insert(&mut *conn, id, new, &inputs, now).await?;
    let added = tasks::add_many(&mut *conn, config, new.campaign_id, &news, now).await;
    added.map_err(|error| {
        error_with_step(error, |place| drafts.get(place).map(|draft| draft.step.to_owned()))
    })?;
    let flow = get(&mut *conn, id).await?;
    let event = flow.event(feed::Kind::FlowStarted, json!({ "tasks": flow.tasks }));
    feed::append(conn, &[event], now).await?;
    Ok(flow)
}

/// Returns the error of the first refused task, with its step.
pub(super) fn error_with_step(error: BulkError, step: impl Fn(usize) -> Option<String>) -> Error {
    match error {
        BulkError::All(error) => error.into(),
        BulkError::Items(wrong) => match wrong.into_iter().next() {
            Some((place, error)) => Error::Step { step: step(place).unwrap_or_default(), error },
            // There is at least one: that is why nothing was added.
            None => StatementError {
                action: "add the tasks of a flow",
                source: sqlx::Error::RowNotFound,
            }
            .into(),
        },
    }
}

async fn insert(
    conn: &mut PgConnection,
    id: Uuid,
    new: &New<'_>,
    inputs: &Inputs,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.flows (id, campaign_id, created_at, template, added_by, inputs) values ($1, $2, $3, $4, $5, $6)",
        id,
        new.campaign_id,
        now,
        new.template.name,
        new.added_by,
        json!(inputs),
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("store a flow"))
}

/// With a list of one item where a list is wanted and one text was given.
fn with_lists(template: &Template, inputs: &Inputs) -> Inputs {
    let fitting = |name: &str, given: &InputValue| match given {
        InputValue::Text(text) if template.has_list(name) => InputValue::List(vec![text.clone()]),
        given => given.clone(),
    };
    inputs.iter().map(|(name, given)| (name.clone(), fitting(name, given))).collect()
}

/// Checks the inputs, and reports all problems at once.
fn check(template: &Template, inputs: &Inputs) -> Result<(), Error> {
    let mut wrong = Vec::new();
    for input in &template.inputs {
        let about = &input.about;
        match inputs.get(&input.name) {
            None => wrong.push(format!(
                "`{name}` is missing ({about}): give `--input {name}=TEXT`, or `{name}` in `inputs` of a request",
                name = input.name
            )),
            Some(InputValue::List(_)) if !input.is_list => {
                wrong.push(format!("`{}` must be one text ({about})", input.name));
            }
            Some(InputValue::List(items)) if items.is_empty() => {
                wrong.push(format!("`{}` is an empty list ({about})", input.name));
            }
            Some(given) if given.has_nul() => {
                wrong.push(format!("`{}` contains the character U+0000", input.name));
            }
            Some(_) => {}
        }
    }
    let known: Vec<&str> = template.inputs.iter().map(|input| input.name.as_str()).collect();
    for name in inputs.keys().filter(|name| !known.contains(&name.as_str())) {
        wrong.push(format!(
            "`{name}` is not an input of the template: its inputs are {}",
            known.join(", ")
        ));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Inputs(wrong)) }
}

fn drafts<'a>(catalogue: &Catalogue, template: &'a Template, inputs: &Inputs) -> Vec<Draft<'a>> {
    let mut drafts = drafts_of_steps(template, inputs);
    if let Some(improvement) = &template.improvement {
        let prompts = [&improvement.reflection, &improvement.prompt]
            .map(|text| fill(text, inputs, None).text);
        let more = improvement.drafts(catalogue, &drafts, prompts);
        drafts.extend(more);
    }
    drafts
}

fn drafts_of_steps<'a>(template: &'a Template, inputs: &Inputs) -> Vec<Draft<'a>> {
    let mut drafts: Vec<Draft<'a>> = Vec::new();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for step in &template.steps {
        let after: Vec<TaskLink> = step
            .after
            .iter()
            .filter_map(|other| places.get(other.as_str()))
            .flatten()
            .map(|item| TaskLink::Item { item: *item })
            .collect();
        let draft = |instance: String, item: Option<(usize, &str)>| {
            let FilledPrompt { text, fields } = fill(&step.prompt, inputs, item);
            Draft {
                step: &step.name,
                agent: &step.agent,
                instance,
                node: step.node.as_deref(),
                session: step.session,
                on_failure: step.on_failure,
                prompt: text,
                fields: (!fields.is_empty()).then(|| json!(fields)),
                result_schema: step.result_schema.as_ref(),
                within_secs: step.within_secs,
                after: after.clone(),
            }
        };
        let items = step.each.as_ref().and_then(|each| inputs.get(each)).map(InputValue::items);
        let n_before = drafts.len();
        match items {
            None => drafts.push(draft(step.instance.clone(), None)),
            Some(items) => drafts.extend((1..).zip(items).map(|(number, item)| {
                draft(format!("{}_{number}", step.instance), Some((number, item)))
            })),
        }
        places.insert(&step.name, (n_before..drafts.len()).collect());
    }
    drafts
}

/// A prompt with its inputs.
struct FilledPrompt {
    text: String,
    /// Its placeholders that stand for fields of results, which are not known yet.
    fields: Vec<StepField>,
}

/// Replaces the placeholders by inputs. Placeholders inside of an input stay as they are.
fn fill(prompt: &str, inputs: &Inputs, item: Option<(usize, &str)>) -> FilledPrompt {
    let mut filled = String::with_capacity(prompt.len());
    let mut fields = Vec::new();
    let mut copied_to = 0;
    for (at, name) in placeholders(prompt) {
        let Some(length) = prompt[at..].find("}}").map(|end| end + 2) else { continue };
        let value = match (name, item) {
            ("item", Some((_, item))) => Some(item.to_owned()),
            ("number", Some((number, _))) => Some(number.to_string()),
            _ => inputs.get(name).map(InputValue::to_prompt_text),
        };
        filled.push_str(&prompt[copied_to..at]);
        if let (None, Some(field)) = (&value, StepField::parse(name)) {
            fields.push(StepField { at: filled.len(), length, ..field });
            filled.push_str(&prompt[at..at + length]);
        }
        filled.push_str(&value.unwrap_or_default());
        copied_to = at + length;
    }
    filled.push_str(&prompt[copied_to..]);
    FilledPrompt { text: filled, fields }
}

impl InputValue {
    /// Appends an item. A text counts as a list of one.
    pub fn append(self, item: &str) -> Vec<String> {
        let mut items = match self {
            Self::Text(text) => vec![text],
            Self::List(items) => items,
        };
        items.push(item.to_owned());
        items
    }

    fn items(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![text],
            Self::List(items) => items.iter().map(String::as_str).collect(),
        }
    }

    fn to_prompt_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(items) => {
                items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
            }
        }
    }

    fn has_nul(&self) -> bool {
        self.items().iter().any(|text| text.contains('\0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_refused_tasks_are_not_too_many() {
        let error = error_with_step(BulkError::Items(Vec::new()), |_| None);
        assert!(matches!(error, Error::Database(_)), "{error}");
    }

    #[test]
    fn inputs_are_substituted_once() {
        let inputs = Inputs::from([
            ("topic".to_owned(), InputValue::Text("{{item}} & Sea".to_owned())),
            ("parts".to_owned(), InputValue::List(vec!["a".to_owned(), "b".to_owned()])),
        ]);
        let filled =
            fill("{{ number }}: {{item}} of {{topic}}\n{{parts}}.", &inputs, Some((2, "b")));
        assert_eq!(filled.text, "2: b of {{item}} & Sea\n- a\n- b.");
        assert_eq!(filled.fields, []);
    }

    #[test]
    fn fields_of_results_keep_their_places() {
        let text = "{{steps.other.result.b}}".to_owned();
        let inputs = Inputs::from([("topic".to_owned(), InputValue::Text(text.clone()))]);
        let filled = fill("{{topic}}: {{ steps.plan.result.a }}!", &inputs, None);
        assert_eq!(filled.text, format!("{text}: {{{{ steps.plan.result.a }}}}!"));
        let path = vec!["a".to_owned()];
        let field = StepField { at: 26, length: 25, step: "plan".to_owned(), path };
        assert_eq!(filled.fields, [field]);
    }
}
