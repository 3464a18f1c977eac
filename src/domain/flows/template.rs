//! The template of a flow: its inputs and steps, from one file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{
    agents::SessionMode as Mode,
    agents::{Catalogue, LookupError},
    files::{Document, Fields, File, FrontMatter, Problem, is_name, nearest},
    objects::translate_message,
    tasks::OnFailure,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Template {
    pub name: String,
    pub description: String,
    pub inputs: Vec<Input>,
    /// Steps in an order in which each waits only for earlier ones.
    pub steps: Vec<Step>,
}

/// An input that has to be given when a flow is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowInput)]
pub struct Input {
    pub name: String,
    /// Description of the input, for the person who starts a flow.
    pub about: String,
    /// True: the input is a list, and a step is repeated for each of its items.
    pub is_list: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowStep)]
pub struct Step {
    pub name: String,
    pub agent: String,
    /// The agent's instance. Of a repeated step: the beginning of its name, before the number.
    pub instance: String,
    /// The steps that it waits for.
    pub after: Vec<String>,
    pub on_failure: OnFailure,
    /// The session mode; null: that of the agent's file.
    pub session: Option<Mode>,
    /// The list for whose items it is repeated.
    pub each: Option<String>,
    /// The prompt with `{{input}}`, and in a repeated step `{{item}}` and `{{number}}`.
    pub prompt: String,
}

/// A step as written in the front matter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepKeys {
    step: String,
    agent: String,
    instance: Option<String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    on_failure: OnFailure,
    session: Option<Mode>,
    each: Option<String>,
}

/// The keys of the front matter, before their parts are checked.
pub(super) struct FrontMatterKeys {
    name: String,
    description: String,
    inputs: Option<FrontMatter>,
    steps: Option<FrontMatter>,
}

/// A prompt below its heading.
struct Section {
    /// The line of the heading.
    heading_line: usize,
    /// The line where the text begins.
    line: usize,
    name: String,
    text: String,
}

impl Template {
    /// Returns true if an input of this name takes a list.
    pub(super) fn has_list(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.is_list && input.name == name)
    }
}

/// Placeholders that only a repeated step has.
const OF_ITEM: [&str; 2] = ["item", "number"];

/// Parses a template, or returns all its problems.
pub(super) fn parse(file: &File, agents: &Catalogue) -> Result<Template, Vec<Problem>> {
    let (mut fields, document) = file.open()?;
    let FrontMatterKeys { name, description, inputs, steps: items } =
        read_keys(&mut fields, &file.name);
    fields.reject_unknown();
    let mut reader = Reader { fields, agents };
    let mut inputs = inputs_of(inputs);
    let sections = sections(&document);
    let mut steps: Vec<Step> = Vec::new();
    // Names of all steps, also of those with problems: others may name them.
    let mut names: Vec<&str> = Vec::new();
    for (line, item) in with_lines(items.as_ref()) {
        steps.extend(reader.step(line, item, &names, &inputs, &sections));
        names.extend(item["step"].as_str());
    }
    reader.report_unused(&sections, &names);
    let each = with_lines(items.as_ref()).filter_map(|(_, item)| item["each"].as_str());
    reader.report_unused_inputs(&sections, &each.collect::<Vec<_>>(), &inputs);
    let mut fields = reader.fields;
    if steps.is_empty() && fields.problems.is_empty() {
        fields.fail_at(1, "steps", "has none", "`steps:` with a list below it");
    }
    for input in &mut inputs {
        input.is_list = steps.iter().any(|step| step.each.as_ref() == Some(&input.name));
    }
    fields.finish(Template { name, description, inputs, steps })
}

pub(super) fn read_keys(fields: &mut Fields<'_>, file_name: &str) -> FrontMatterKeys {
    let are_texts =
        |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_string));
    FrontMatterKeys {
        name: fields.name(file_name),
        description: fields.required("description", "one line that describes the template"),
        inputs: fields.value(
            "inputs",
            "names with descriptions: `topic: the subject of the series`",
            are_texts,
        ),
        steps: fields.value(
            "steps",
            "a list: `- step: plan`, then `agent: planner`",
            Value::is_array,
        ),
    }
}

/// Finds the names between `{{` and `}}`, each with its place in the text.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split("{{").enumerate().filter_map(move |(n, part)| {
        // The braces stand before the part.
        let begins = usize::saturating_sub(at, 2);
        at += part.len() + 2;
        (n > 0).then(|| part.split_once("}}").map(|(name, _)| (begins, name.trim())))?
    })
}

struct Reader<'a> {
    fields: Fields<'a>,
    agents: &'a Catalogue,
}

impl Reader<'_> {
    fn step(
        &mut self,
        line: usize,
        item: &Value,
        before: &[&str],
        inputs: &[Input],
        sections: &[Section],
    ) -> Option<Step> {
        let written: StepKeys = match serde_json::from_value(item.clone()) {
            Ok(written) => written,
            Err(error) => {
                let fix =
                    "step, agent, and where needed instance, after, on_failure, session, each";
                let step = match item["step"].as_str() {
                    Some(name) => format!("the step `{name}`"),
                    None => "a step without a name".to_owned(),
                };
                let error = translate_message(&error.to_string());
                self.fields.fail_at(line, "steps", format!("{step} cannot be read: {error}"), fix);
                return None;
            }
        };
        let names = || before.iter().copied();
        let name = written.step;
        if !is_name(&name) || names().any(|known| known == name) {
            let fix = "a name of its own: lower-case letters, digits, - and _, at most 64";
            self.fields.fail_at(
                line,
                "step",
                format!("`{name}` is not a valid name, or an earlier step has it"),
                fix.to_owned(),
            );
        }
        match self.agents.agent(&written.agent) {
            Ok(_) => {}
            Err(LookupError::Unknown { name, advice, .. }) => {
                self.fields.fail_at(line, "agent", format!("there is no agent `{name}`"), advice);
            }
            Err(LookupError::Broken { name, problem, .. }) => {
                let message = format!("the file of the agent `{name}` has problems");
                self.fields.fail_at(
                    line,
                    "agent",
                    message,
                    format!("another agent, or fix {problem}"),
                );
            }
        }
        let instance = written.instance.unwrap_or_else(|| "main".to_owned());
        if !is_name(&instance) || instance.len() > 56 {
            let fix = "lower-case letters, digits, - and _, at most 56";
            self.fields.fail_at(
                line,
                "instance",
                format!("`{instance}` is not a valid name"),
                fix.to_owned(),
            );
        }
        for other in written.after.iter().filter(|other| !names().any(|known| known == *other)) {
            let fix = match nearest(other, names()) {
                Some(near) => format!("{near} (the closest match)"),
                None => "steps that come before it in the list".to_owned(),
            };
            self.fields.fail_at(line, "after", format!("`{other}` is not an earlier step"), fix);
        }
        if let Some(each) =
            written.each.as_ref().filter(|each| !inputs.iter().any(|it| it.name == **each))
        {
            let fix = "the name of an input, which is then a list".to_owned();
            self.fields.fail_at(line, "each", format!("`{each}` is not an input"), fix);
        }
        let section = sections.iter().find(|section| section.name == name);
        let Some(section) = section.filter(|section| !section.text.is_empty()) else {
            let fix = format!("below the front matter: `## {name}`, then the prompt of the step");
            self.fields.fail_at(line, "step", format!("`{name}` has no prompt"), fix);
            return None;
        };
        self.check_prompt(section, inputs, written.each.is_some());
        Some(Step {
            name,
            agent: written.agent,
            instance,
            after: written.after,
            on_failure: written.on_failure,
            session: written.session,
            each: written.each,
            prompt: section.text.clone(),
        })
    }

    fn check_prompt(&mut self, section: &Section, inputs: &[Input], is_repeated: bool) {
        for (at, name) in placeholders(&section.text) {
            let is_known = inputs.iter().any(|input| input.name == name)
                || (is_repeated && OF_ITEM.contains(&name));
            if is_known {
                continue;
            }
            let line = section.line + section.text[..at].matches('\n').count();
            let fix = match nearest(name, inputs.iter().map(|input| input.name.as_str())) {
                Some(near) => format!("{{{{{near}}}}} (the closest match)"),
                None => "an input by its name; in a step with `each` also {{item}} and {{number}}"
                    .to_owned(),
            };
            self.fields.fail_at(
                line,
                &section.name,
                format!("`{{{{{name}}}}}` is not an input"),
                fix,
            );
        }
    }

    /// Reports inputs that have no effect. A misspelt use counts, because it is reported itself.
    fn report_unused_inputs(&mut self, sections: &[Section], each: &[&str], inputs: &[Input]) {
        let names = || inputs.iter().map(|input| input.name.as_str());
        let in_prompts = sections.iter().flat_map(|section| placeholders(&section.text));
        let used: Vec<&str> = in_prompts
            .map(|(_, name)| name)
            .chain(each.iter().copied())
            .filter_map(|name| {
                names().find(|known| *known == name).or_else(|| nearest(name, names()))
            })
            .collect();
        for name in names().filter(|name| !used.contains(name)) {
            let message = format!("`{name}` is unused: no prompt and no `each` names it");
            self.fields.fail(
                "inputs",
                message,
                format!("`{{{{{name}}}}}` in a prompt, or remove it"),
            );
        }
    }

    fn report_unused(&mut self, sections: &[Section], steps: &[&str]) {
        for section in sections {
            if !steps.contains(&section.name.as_str()) {
                let fix = "a step of this name in the front matter, or a heading of another level"
                    .to_owned();
                let message = "is a prompt without a step".to_owned();
                self.fields.fail_at(
                    section.heading_line,
                    &format!("## {}", section.name),
                    message,
                    fix,
                );
            }
        }
    }
}

fn inputs_of(found: Option<FrontMatter>) -> Vec<Input> {
    let inputs: BTreeMap<String, Value> =
        found.and_then(|found| serde_json::from_value(found.value).ok()).unwrap_or_default();
    let input = |(name, about): (String, Value)| {
        let about = about.as_str().unwrap_or_default().to_owned();
        Input { name, about, is_list: false }
    };
    inputs.into_iter().map(input).collect()
}

fn with_lines(steps: Option<&FrontMatter>) -> impl Iterator<Item = (usize, &Value)> {
    steps.into_iter().flat_map(|found| {
        let values = found.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let lines = found.item_lines.iter().copied().chain(std::iter::repeat(found.line));
        lines.zip(values)
    })
}

/// The headings of the second level below the front matter, with the texts below them.
fn sections(document: &Document<'_>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in (document.rest_line..).zip(document.rest.lines()) {
        if let Some(name) = text.strip_prefix("## ") {
            let name = name.trim().to_owned();
            sections.push(Section {
                heading_line: line,
                line: line + 1,
                name,
                text: String::new(),
            });
        } else if let Some(section) = sections.last_mut() {
            section.text.push_str(text);
            section.text.push('\n');
        }
    }
    for section in &mut sections {
        let blank = section.text.len() - section.text.trim_start_matches('\n').len();
        section.line += blank;
        section.text = section.text.trim().to_owned();
    }
    sections
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::template_format, *};

    #[test]
    fn placeholders_are_found_with_their_positions() {
        let text = "Write {{ topic }} for {{who}}, {{ open";
        let found: Vec<_> = placeholders(text).collect();
        assert_eq!(found, [(6, "topic"), (22, "who")]);
    }

    #[test]
    fn second_level_headings_begin_prompts() {
        let content =
            "---\nname: x\n---\nFor people.\n\n## plan\n\nOne.\n\n### Part\n\n## draft\nTwo.\n";
        let found = sections(&Document::parse("x.md", content).unwrap());
        let found: Vec<_> =
            found.iter().map(|s| (s.line, s.name.as_str(), s.text.as_str())).collect();
        assert_eq!(found, [(8, "plan", "One.\n\n### Part"), (13, "draft", "Two.")]);
    }

    #[test]
    fn the_schema_has_the_keys_and_choices_of_a_step() {
        let schema = template_format().schema().unwrap();
        let step = &schema["properties"]["steps"]["items"]["properties"];
        let documented: Vec<_> =
            step.as_object().unwrap().keys().map(|key| format!("`{key}`")).collect();
        let read = |step: Value| serde_json::from_value::<StepKeys>(step).map(|_| ());
        let error = read(json!({ "x": 1 })).unwrap_err().to_string();
        let mut known: Vec<_> =
            error.split("one of ").nth(1).unwrap().split(", ").map(str::to_owned).collect();
        known.sort();
        assert_eq!(documented, known);
        for key in ["on_failure", "session"] {
            let choices = step[key]["enum"].as_array().unwrap();
            let with = |choice: &Value| json!({ "step": "a", "agent": "b", key: choice });
            assert!(choices.iter().all(|choice| read(with(choice)).is_ok()), "{choices:?}");
            let error = read(with(&json!("none of them"))).unwrap_err().to_string();
            let all = choices.iter().map(|choice| format!("`{}`", choice.as_str().unwrap()));
            assert!(all.clone().all(|choice| error.contains(&choice)), "{error}");
            assert_eq!(error.matches('`').count(), 2 + 2 * all.count(), "{error}");
        }
    }
}
