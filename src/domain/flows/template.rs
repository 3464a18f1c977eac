//! The template of a flow: its inputs and steps, from one file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    improvement::{self, Improvement},
    steps::{StepContext, read_step},
};
use crate::domain::{
    agents::{Catalogue, SessionMode as Mode},
    files::{Document, Fields, File, FrontMatter, ListItem, Problem, nearest},
    tasks::OnFailure,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Template {
    pub name: String,
    pub description: String,
    pub inputs: Vec<Input>,
    /// Steps in an order in which each waits only for earlier ones.
    pub steps: Vec<Step>,
    /// The phase after the steps, if the template asks for it.
    #[serde(default)]
    pub improvement: Option<Improvement>,
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
    /// The node of its tasks; null: sessions stay at their node.
    #[serde(default)]
    pub node: Option<String>,
    /// The list for whose items it is repeated.
    pub each: Option<String>,
    /// The JSON Schema of its results; null: that of the agent's file, if it has one.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result_schema: Option<Value>,
    /// Seconds that the answers to its tasks may take, from the end of the steps that they wait for.
    #[serde(default)]
    pub within_secs: Option<i32>,
    /// The prompt with `{{input}}`, `{{steps.plan.result.title}}` for a field of an earlier result, and in a repeated step `{{item}}` and
    /// `{{number}}`.
    pub prompt: String,
}

/// A step of a broken template, as far as the file names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowStepOutline)]
pub struct StepOutline {
    pub name: String,
    pub agent: String,
    #[serde(default)]
    pub node: Option<String>,
}

/// The keys of the front matter, before their parts are checked.
pub(super) struct FrontMatterKeys {
    name: String,
    description: String,
    inputs: Option<FrontMatter>,
    steps: Option<FrontMatter>,
    improvement: Option<String>,
}

/// A prompt below its heading.
pub(super) struct Section {
    /// The line of the heading.
    pub heading_line: usize,
    /// The line where the text begins.
    pub line: usize,
    pub name: String,
    pub text: String,
}

impl Template {
    /// Returns true if an input of this name takes a list.
    pub(super) fn has_list(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.is_list && input.name == name)
    }
}

/// Parses a template, or returns all its problems.
pub(super) fn parse(file: &File, agents: &Catalogue) -> Result<Template, Vec<Problem>> {
    let (mut fields, document) = file.open()?;
    let FrontMatterKeys { name, description, inputs, steps: items, improvement } =
        read_keys(&mut fields, &file.name);
    fields.reject_unknown();
    let mut inputs = inputs_of(inputs);
    let items = items.map(|found| found.items).unwrap_or_default();
    let sections = sections(&document);
    let around = StepContext { agents, inputs: &inputs, sections: &sections };
    let mut steps: Vec<Step> = Vec::new();
    // Names of all steps, also of those with problems: others may name them.
    let mut names: Vec<&str> = Vec::new();
    for item in &items {
        let step = read_step(&mut fields, item, (&names, &steps), &around);
        steps.extend(step);
        names.extend(item.text("step"));
    }
    let improvement =
        improvement.map(|agent| improvement::read(&mut fields, agent, &name, &names, &around));
    let own_headings = improvement.iter().flat_map(|_| improvement::STEPS);
    let headings: Vec<&str> = names.iter().copied().chain(own_headings).collect();
    report_headings(&mut fields, &sections, &headings);
    let each: Vec<&str> = items.iter().filter_map(|item| item.text("each")).collect();
    report_unused_inputs(&mut fields, &sections, &each, &inputs);
    if steps.is_empty() && fields.problems.is_empty() {
        fields.fail_at(1, "steps", "has none", "`steps:` with a list below it");
    }
    for input in &mut inputs {
        input.is_list = steps.iter().any(|step| step.each.as_ref() == Some(&input.name));
    }
    fields.finish(Template { name, description, inputs, steps, improvement })
}

/// Reads the steps of a template with problems. Empty if its front matter cannot be read.
pub(super) fn outline(file: &File) -> Vec<StepOutline> {
    let Ok((mut fields, _)) = file.open() else { return Vec::new() };
    let items = read_keys(&mut fields, &file.name).steps.map(|found| found.items);
    let outline = |item: &ListItem| {
        Some(StepOutline {
            name: item.text("step").unwrap_or_default().to_owned(),
            agent: item.text("agent")?.to_owned(),
            node: item.text("node").map(str::to_owned),
        })
    };
    items.unwrap_or_default().iter().filter_map(outline).collect()
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
        improvement: fields.text("improvement"),
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

/// Reports inputs that have no effect. A misspelt use counts, because it is reported itself.
fn report_unused_inputs(
    fields: &mut Fields<'_>,
    sections: &[Section],
    each: &[&str],
    inputs: &[Input],
) {
    let names = || inputs.iter().map(|input| input.name.as_str());
    let in_prompts = sections.iter().flat_map(|section| placeholders(&section.text));
    let used: Vec<&str> = in_prompts
        .map(|(_, name)| name)
        .chain(each.iter().copied())
        .filter_map(|name| names().find(|known| *known == name).or_else(|| nearest(name, names())))
        .collect();
    for name in names().filter(|name| !used.contains(name)) {
        let message = format!("`{name}` is unused: no prompt and no `each` names it");
        let fix = format!("`{{{{{name}}}}}` in a prompt, or remove it");
        fields.fail("inputs", message, fix);
    }
}

/// Reports headings without a step, and those of a step that has a heading already.
fn report_headings(fields: &mut Fields<'_>, sections: &[Section], steps: &[&str]) {
    for (at, section) in sections.iter().enumerate() {
        let key = format!("## {}", section.name);
        let first = sections[..at].iter().find(|first| first.name == section.name);
        if !steps.contains(&section.name.as_str()) {
            let fix = "a step of this name in the front matter, or a heading of another level";
            fields.fail_at(section.heading_line, &key, "is a prompt without a step", fix);
        } else if let Some(first) = first {
            let message = format!(
                "is a second prompt of its step: line {} has the first",
                first.heading_line
            );
            let fix = "both texts below one heading, or a heading of another level";
            fields.fail_at(section.heading_line, &key, message, fix);
        }
    }
}

fn inputs_of(found: Option<FrontMatter>) -> Vec<Input> {
    let Some(found) = found else { return Vec::new() };
    let about = |name: &str| found.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let input =
        |name: &String| Input { name: name.clone(), about: about(name).to_owned(), is_list: false };
    found.keys.iter().map(input).collect()
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
    use super::*;

    #[test]
    fn placeholders_are_found_with_their_positions() {
        let text = "Write {{ topic }} for {{who}}, {{ open";
        let found: Vec<_> = placeholders(text).collect();
        assert_eq!(found, [(6, "topic"), (22, "who")]);
    }

    #[test]
    fn inputs_keep_their_order() {
        let content = "---\ninputs:\n  topic: The subject\n  parts: The parts\n---\n";
        let mut document = Document::parse("x.md", content).unwrap();
        let inputs = inputs_of(document.values.remove("inputs"));
        let names: Vec<_> = inputs.iter().map(|it| (it.name.as_str(), it.about.as_str())).collect();
        assert_eq!(names, [("topic", "The subject"), ("parts", "The parts")]);
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
}
