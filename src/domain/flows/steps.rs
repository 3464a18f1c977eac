//! The reader of a template's steps. Each problem is reported at the line of its key, and none hides another.

use serde_json::Value;

use super::{
    step_fields::{EarlierSteps, check_field},
    template::{Input, Section, Step, placeholders},
};
use crate::domain::{
    agents::{Catalogue, LookupError, SessionMode as Mode},
    files::{Fields, ListItem, is_name, nearest},
    tasks::{self, OnFailure},
    timestamp,
};

/// The parts of an installation and of the template that a step may name.
pub(super) struct StepContext<'a> {
    pub agents: &'a Catalogue,
    pub inputs: &'a [Input],
    pub sections: &'a [Section],
}

/// A step as written in the front matter.
struct StepKeys {
    name: String,
    agent: String,
    instance: Option<String>,
    after: Vec<String>,
    on_failure: OnFailure,
    session: Option<Mode>,
    node: Option<String>,
    each: Option<String>,
    result_schema: Option<Value>,
    within_secs: Option<i32>,
}

/// Placeholders that only a repeated step has.
const OF_ITEM: [&str; 2] = ["item", "number"];
/// The longest instance. A repeated step adds a number to it.
const INSTANCE_MAX_BYTES: usize = 56;
const ON_FAILURE: [(&str, OnFailure); 2] = [("run", OnFailure::Run), ("cancel", OnFailure::Cancel)];

/// Reads a step, and reports its problems. `before` has the names of the steps above it, and those of them that could be read. `None`: the
/// step has no prompt.
pub(super) fn read_step(
    fields: &mut Fields<'_>,
    item: &ListItem,
    (before, earlier): (&[&str], &[Step]),
    around: &StepContext<'_>,
) -> Option<Step> {
    let Some(mut keys) = fields.open_item(item) else {
        let fix = "`- step: plan`, and below it `agent: planner`";
        fields.fail_at(item.line, "steps", "contains an item that is not a map of keys", fix);
        return None;
    };
    let step = read_keys(&mut keys);
    check_name(&mut keys, &step.name, before);
    check_agent(&mut keys, &step.agent, around.agents);
    let instance = step.instance.unwrap_or_else(|| "main".to_owned());
    if !is_name(&instance) || instance.len() > INSTANCE_MAX_BYTES {
        let fix = format!("lower-case letters, digits, - and _, at most {INSTANCE_MAX_BYTES}");
        keys.fail("instance", format!("`{instance}` is not a valid name"), fix);
    }
    if let Some(node) = &step.node {
        check_node(&mut keys, "node", node, around.agents);
    }
    check_after(&mut keys, &step.after, before);
    check_each(&mut keys, step.each.as_deref(), around.inputs);
    let section = find_section(&mut keys, &step.name, around.sections);
    fields.problems.extend(keys.into_problems());
    let section = section?;
    let earlier =
        EarlierSteps { names: before, steps: earlier, after: &step.after, agents: around.agents };
    check_prompt(fields, section, around.inputs, item.has("each"), Some(&earlier));
    Some(Step {
        name: step.name,
        agent: step.agent,
        instance,
        after: step.after,
        on_failure: step.on_failure,
        session: step.session,
        node: step.node,
        each: step.each,
        result_schema: step.result_schema,
        within_secs: step.within_secs,
        prompt: section.text.clone(),
    })
}

fn read_keys(keys: &mut Fields<'_>) -> StepKeys {
    StepKeys {
        name: keys.required("step", "the name of the step"),
        agent: keys.required("agent", "the agent that carries out the step"),
        instance: keys.text("instance"),
        after: read_after(keys),
        on_failure: keys.one_of("on_failure", &ON_FAILURE).unwrap_or_default(),
        session: keys.one_of("session", &Mode::CHOICES),
        node: keys.text("node"),
        each: keys.text("each"),
        result_schema: keys.result_schema(),
        within_secs: read_within(keys),
    }
}

/// Reads the time for the answers, with the checks of `task add --within`.
fn read_within(keys: &mut Fields<'_>) -> Option<i32> {
    const KEY: &str = "within";
    let period = timestamp::parse_period(&keys.text(KEY)?);
    let secs = period.map(tasks::within_secs);
    let checked = secs.and_then(|secs| {
        tasks::check_within(secs).map(|()| secs).map_err(|error| error.to_string())
    });
    checked.map_err(|message| keys.fail(KEY, message, "within: 1h to 7d, for example 24h")).ok()
}

fn read_after(keys: &mut Fields<'_>) -> Vec<String> {
    let are_texts =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let found = keys.value("after", "a list of earlier steps, such as [plan, draft]", are_texts);
    found.and_then(|found| serde_json::from_value(found.value).ok()).unwrap_or_default()
}

/// Checks a name. An empty one has been reported.
fn check_name(keys: &mut Fields<'_>, name: &str, before: &[&str]) {
    if !name.is_empty() && !is_name(name) {
        let fix = "lower-case letters, digits, - and _, at most 64";
        keys.fail("step", format!("`{name}` is not a valid name"), fix);
    } else if before.contains(&name) {
        keys.fail("step", format!("an earlier step has the name `{name}`"), "a name of its own");
    }
}

fn check_agent(keys: &mut Fields<'_>, name: &str, agents: &Catalogue) {
    if !name.is_empty() {
        report_lookup(keys, "agent", agents.agent(name).err());
    }
}

/// Reports a node that tasks cannot enter. `key` names it.
pub(super) fn check_node(keys: &mut Fields<'_>, key: &'static str, name: &str, agents: &Catalogue) {
    report_lookup(keys, key, agents.node(name).err());
}

/// Reports the name of an agent or a node that cannot be used.
pub(super) fn report_lookup(keys: &mut Fields<'_>, key: &'static str, error: Option<LookupError>) {
    match error {
        None => {}
        Some(LookupError::Unknown { noun, name, advice }) => {
            keys.fail(key, format!("there is no {} `{name}`", noun.as_str()), advice);
        }
        Some(LookupError::Broken { noun, name, problem }) => {
            let message = format!("the file of the {} `{name}` has problems", noun.as_str());
            keys.fail(key, message, format!("another {}, or fix {problem}", noun.as_str()));
        }
    }
}

fn check_after(keys: &mut Fields<'_>, after: &[String], before: &[&str]) {
    for other in after.iter().filter(|other| !before.contains(&other.as_str())) {
        let fix = match nearest(other, before.iter().copied()) {
            Some(near) => format!("{near} (the closest match)"),
            None => "steps that come before it in the list".to_owned(),
        };
        keys.fail("after", format!("`{other}` is not an earlier step"), fix);
    }
}

fn check_each(keys: &mut Fields<'_>, each: Option<&str>, inputs: &[Input]) {
    if let Some(each) = each.filter(|each| !inputs.iter().any(|input| input.name == *each)) {
        let fix = "the name of an input, which is then a list";
        keys.fail("each", format!("`{each}` is not an input"), fix);
    }
}

/// Finds the prompt of a step. A missing one is reported, unless the step's name has to change anyway.
fn find_section<'a>(
    keys: &mut Fields<'_>,
    name: &str,
    sections: &'a [Section],
) -> Option<&'a Section> {
    let mut sections = sections.iter().filter(|section| !section.text.is_empty());
    let found = sections.find(|section| section.name == name);
    if found.is_none() && is_name(name) {
        let fix = format!("below the front matter: `## {name}`, then the prompt of the step");
        keys.fail("step", format!("`{name}` has no prompt"), fix);
    }
    found
}

/// Checks the placeholders of a prompt. `earlier`: the steps whose results it may name.
pub(super) fn check_prompt(
    fields: &mut Fields<'_>,
    section: &Section,
    inputs: &[Input],
    is_repeated: bool,
    earlier: Option<&EarlierSteps<'_>>,
) {
    for (at, name) in placeholders(&section.text) {
        let is_known = inputs.iter().any(|input| input.name == name)
            || (is_repeated && OF_ITEM.contains(&name));
        if is_known {
            continue;
        }
        let line = section.line + section.text[..at].matches('\n').count();
        if let Some(earlier) = earlier.filter(|_| name.starts_with("steps.")) {
            if let Err((message, fix)) = check_field(name, earlier) {
                fields.fail_at(line, &section.name, message, fix);
            }
            continue;
        }
        let fix = match nearest(name, inputs.iter().map(|input| input.name.as_str())) {
            Some(near) => format!("{{{{{near}}}}} (the closest match)"),
            None => "an input by its name; in a step with `each` also {{item}} and {{number}}"
                .to_owned(),
        };
        let message = format!("`{{{{{name}}}}}` is not an input");
        fields.fail_at(line, &section.name, message, fix);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::template_format, *};
    use crate::domain::files::ValueType;

    #[test]
    fn the_schema_has_the_keys_and_choices_of_a_step() {
        let schema = template_format().schema().unwrap();
        let step = &schema["properties"]["steps"]["items"]["properties"];
        let documented: Vec<&str> = step.as_object().unwrap().keys().map(String::as_str).collect();
        let mut fields = Fields::new("", BTreeMap::new());
        read_keys(&mut fields);
        let keys = fields.into_keys();
        let mut known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        known.sort_unstable();
        assert_eq!(documented, known);
        for name in ["on_failure", "session"] {
            let choices = step[name]["enum"].as_array().unwrap().iter();
            let choices: Vec<&str> = choices.map(|choice| choice.as_str().unwrap()).collect();
            let key = keys.iter().find(|key| key.name == name).unwrap();
            assert!(matches!(&key.value, ValueType::Choice(read) if *read == choices), "{key:?}");
        }
    }
}
