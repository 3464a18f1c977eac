//! Fields of results of earlier steps, for which places of a prompt stand: `{{steps.plan.result.title}}`.
//!
//! The places are stored beside the prompt, because an input may contain the same text. They are filled when the turn
//! begins: the results are known then, and a retry of the flow may have replaced them.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::State;
use crate::domain::StatementError;

/// A place in a prompt, in bytes, and the field whose value belongs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepField {
    pub at: usize,
    pub length: usize,
    pub step: String,
    /// Names of fields, and indexes of lists. Empty: the whole result.
    pub path: Vec<String>,
}

/// The result of a step that has one task.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    pub step: String,
    pub state: State,
    pub value: Option<Value>,
}

impl StepField {
    /// Parses the name of a placeholder, without its place. `None`: it names no field of a result.
    pub fn parse(name: &str) -> Option<Self> {
        let mut names = name.strip_prefix("steps.")?.split('.');
        let step = names.next().filter(|step| !step.is_empty())?.to_owned();
        if names.next() != Some("result") {
            return None;
        }
        let path: Vec<String> = names.map(str::to_owned).collect();
        let is_complete = path.iter().all(|name| !name.is_empty());
        is_complete.then_some(Self { at: 0, length: 0, step, path })
    }

    fn name(&self) -> String {
        let mut name = format!("steps.{}.result", self.step);
        for part in &self.path {
            let _ = write!(name, ".{part}");
        }
        name
    }

    fn value(&self, results: &[StepResult]) -> Result<String, String> {
        let why = |why: String| {
            let step = &self.step;
            format!(
                "`{{{{{}}}}}` in the prompt has no value, because {why}: `dalsegno flow retry` runs the flow again from the step `{step}`",
                self.name()
            )
        };
        let step = &self.step;
        let result = results.iter().find(|result| result.step == *step);
        let result = result.ok_or_else(|| why(format!("the flow has no step `{step}`")))?;
        let mut value = match (&result.value, result.state) {
            (Some(value), State::Done) => value,
            (None, State::Done) => {
                return Err(why(format!("the step `{step}` has no structured result")));
            }
            (_, state) => return Err(why(format!("the step `{step}` is {}", state.as_str()))),
        };
        for name in &self.path {
            let found = match value {
                Value::Object(fields) => fields.get(name),
                Value::Array(items) => name.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            let missing = || why(format!("the result of the step `{step}` has no `{name}`"));
            value = found.ok_or_else(missing)?;
        }
        Ok(match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        })
    }
}

/// Replaces the places of a prompt by the values of their fields. The error says which one has none, and why.
pub fn fill_fields(
    prompt: &str,
    fields: &[StepField],
    results: &[StepResult],
) -> Result<String, String> {
    let mut filled = String::with_capacity(prompt.len());
    let mut copied_to = 0;
    for field in fields {
        let value = field.value(results)?;
        let end = field.at.saturating_add(field.length);
        // An erased prompt has no such place.
        let before = prompt.get(copied_to..field.at).filter(|_| prompt.is_char_boundary(end));
        let before = before.ok_or_else(|| "the prompt of the task was erased".to_owned())?;
        filled.push_str(before);
        filled.push_str(&value);
        copied_to = end;
    }
    filled.push_str(prompt.get(copied_to..).unwrap_or_default());
    Ok(filled)
}

/// Reads the results of steps of a flow; of a retried step, those of its latest task.
pub async fn step_results(
    executor: impl PgExecutor<'_>,
    flow_id: Uuid,
    steps: &[String],
) -> Result<Vec<StepResult>, StatementError> {
    sqlx::query_as!(
        StepResult,
        r#"select s.step as "step!", s.state as "state!: State", t.result_json as value
             from dalsegno.flow_steps as s join dalsegno.tasks as t on t.id = s.task_id
            where s.flow_id = $1 and s.step = any($2)"#,
        flow_id,
        steps,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the results of earlier steps"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(prompt: &str, placeholder: &str) -> StepField {
        let name = placeholder.trim_matches(['{', '}']);
        let at = prompt.find(placeholder).unwrap();
        StepField { at, length: placeholder.len(), ..StepField::parse(name).unwrap() }
    }

    fn results(state: State, value: Option<Value>) -> Vec<StepResult> {
        vec![StepResult { step: "plan".to_owned(), state, value }]
    }

    #[test]
    fn places_are_filled_with_texts_and_json() {
        let prompt = "„{{steps.plan.result.title}}“: {{steps.plan.result.parts}}, {{steps.plan.result.parts.1}}.";
        let fields = [
            "{{steps.plan.result.title}}",
            "{{steps.plan.result.parts}}",
            "{{steps.plan.result.parts.1}}",
        ];
        let fields = fields.map(|one| field(prompt, one));
        let value = json!({ "title": "{{steps.plan.result.parts}}", "parts": ["a", "b"] });
        let filled = fill_fields(prompt, &fields, &results(State::Done, Some(value))).unwrap();
        assert_eq!(filled, "„{{steps.plan.result.parts}}“: [\"a\",\"b\"], b.");
    }

    #[test]
    fn a_field_without_a_value_is_explained() {
        let prompt = "{{steps.plan.result.title}}";
        let why = |state, value| {
            fill_fields(prompt, &[field(prompt, prompt)], &results(state, value)).unwrap_err()
        };
        assert!(why(State::Done, Some(json!({}))).contains("has no `title`: "));
        assert!(why(State::Done, None).contains("no structured result"));
        assert!(why(State::Failed, None).contains("the step `plan` is failed"));
        let none = fill_fields(prompt, &[field(prompt, prompt)], &[]).unwrap_err();
        assert!(none.contains("no step `plan`"), "{none}");
    }

    #[test]
    fn only_complete_names_are_fields() {
        for name in ["topic", "steps.", "steps.plan", "steps.plan.results.a", "steps.plan.result."]
        {
            assert_eq!(StepField::parse(name), None, "{name}");
        }
        assert_eq!(StepField::parse("steps.plan.result").unwrap().path, [""; 0]);
    }
}
