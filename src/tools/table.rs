//! Table of the tools and of the roles that may use them, made from the tools themselves.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    Role, catalogue,
    tool::{self, Access},
};

/// Row of the table: one tool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    pub tool: &'static str,
    /// An agent whose file grants the tools.
    pub agent: &'static str,
    pub lead: &'static str,
    pub operator: &'static str,
    /// Arguments that only some roles have, with these roles.
    pub only: Vec<String>,
    pub about: &'static str,
}

/// Returns all tools in their order, except those that exist for tests.
pub fn table() -> Vec<Line> {
    catalogue::all().filter(|tool| is_listed(tool)).map(Line::of).collect()
}

const YES: &str = "yes";
const NO: &str = "no";
const IF_NAMED: &str = "if its file names it";
const IF_GRANTED: &str = "if its file grants a path";
const IF_WRITES_FACTS: &str = "if its file has writes_facts";

impl Line {
    fn of(tool: &tool::Tool) -> Self {
        let (agent, lead, operator) = match tool.who {
            Access::Everybody => (YES, YES, YES),
            Access::Agents => (YES, YES, NO),
            Access::Operators => (NO, NO, YES),
            Access::Lead => (NO, YES, YES),
            Access::LeadAndNamed => (IF_NAMED, YES, YES),
            #[cfg(feature = "test-fakes")]
            Access::Named => (IF_NAMED, IF_NAMED, NO),
            Access::BlackboardReaders | Access::BlackboardWriters => (IF_GRANTED, IF_GRANTED, YES),
            Access::FactWriters => (IF_WRITES_FACTS, IF_WRITES_FACTS, NO),
        };
        Self {
            tool: tool.name,
            agent,
            lead,
            operator,
            only: role_only_arguments(tool),
            about: tool.description,
        }
    }
}

fn role_only_arguments(tool: &tool::Tool) -> Vec<String> {
    let names = Role::ALL.map(|role| (role, arguments(tool, role)));
    let mut all: Vec<&String> = names.iter().flat_map(|(_, names)| names).collect();
    all.sort();
    all.dedup();
    let who = |name: &String| {
        let have = names.iter().filter(|(_, names)| names.contains(name));
        have.map(|(role, _)| role.as_str()).collect::<Vec<_>>()
    };
    let some = all.into_iter().map(|name| (name, who(name)));
    some.filter(|(_, who)| who.len() < Role::ALL.len())
        .map(|(name, who)| format!("{name}: {}", who.join(", ")))
        .collect()
}

fn arguments(tool: &tool::Tool, role: Role) -> Vec<String> {
    let spec = catalogue::spec(tool, role);
    let properties = spec.input_schema["properties"].as_object();
    properties.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the table as Markdown, for people and for `docs/reference/mcp-tools.md`.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    for Line { tool, agent, lead, operator, only, .. } in table() {
        let only = only.join("; ");
        text.push_str(&format!("| {tool} | {agent} | {lead} | {operator} | {only} |\n"));
    }
    text.push_str("\n| tool | description for the model |\n|---|---|\n");
    for Line { tool, about, .. } in table() {
        text.push_str(&format!("| {tool} | {about} |\n"));
    }
    text.push_str(ARGUMENTS_HEAD);
    for tool in catalogue::all().filter(|tool| is_listed(tool)) {
        text.extend(argument_rows(tool));
    }
    text
}

fn is_listed(tool: &tool::Tool) -> bool {
    !tool.name.starts_with("trial_")
}

/// Formats a row for each argument of a tool that any role has.
fn argument_rows(tool: &tool::Tool) -> Vec<String> {
    let (mut rows, mut known) = (Vec::new(), BTreeSet::new());
    for role in Role::ALL {
        let schema = catalogue::spec(tool, role).input_schema.clone();
        let Some(properties) = schema["properties"].as_object() else { continue };
        for (name, property) in properties {
            if known.insert(name.clone()) {
                let required = if is_required(&schema, name) { "yes" } else { "no" };
                let description = cell(property["description"].as_str().unwrap_or_default());
                let kind = cell(&describe_type(property));
                let tool = tool.name;
                rows.push(format!("| {tool} | `{name}` | {kind} | {required} | {description} |\n"));
            }
        }
    }
    rows
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
}

/// Describes the type of a value in a JSON Schema: `string`, or `array of object (agent, prompt, instance?)`.
fn describe_type(schema: &Value) -> String {
    let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array());
    if let Some(choices) = choices {
        return choices.iter().map(describe_type).collect::<Vec<_>>().join(" or ");
    }
    let values = schema["enum"].as_array().cloned();
    if let Some(values) = values.or_else(|| schema.get("const").map(|value| vec![value.clone()])) {
        let values = values.iter().map(|value| format!("`{value}`"));
        return values.collect::<Vec<_>>().join(" or ");
    }
    match (schema["type"].as_str(), schema["properties"].as_object()) {
        (Some("array"), _) => format!("array of {}", describe_type(&schema["items"])),
        (Some("object"), Some(fields)) => format!("object ({})", field_names(schema, fields)),
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

/// Lists the fields of an object. A question mark means that the field can be left out.
fn field_names(schema: &Value, fields: &Map<String, Value>) -> String {
    let name = |name: &String| match is_required(schema, name) {
        true => name.clone(),
        false => format!("{name}?"),
    };
    fields.keys().map(name).collect::<Vec<_>>().join(", ")
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "\\<")
}

const ARGUMENTS_HEAD: &str = "
## Arguments

A question mark marks fields of an object that can be left out.

| tool | argument | type | required | description |
|---|---|---|---|---|
";

const HEAD: &str = "\
# Who may use which tool

`dalsegno mcp tools` prints this from the code. An agent has a tool only if its file also grants it: `mcp__dalsegno` for all that its role may use,
`mcp__dalsegno__board_post` for one.

| tool | agent | lead | operator | arguments that not all have |
|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_of_arguments_are_described_with_their_fields() {
        let object = json!({
            "type": "object",
            "properties": { "agent": {}, "instance": {} },
            "required": ["agent"],
        });
        let array = json!({ "type": "array", "items": object });
        assert_eq!(describe_type(&array), "array of object (agent, instance?)");
        assert_eq!(describe_type(&json!({ "enum": ["a", "b"] })), "`\"a\"` or `\"b\"`");
        let either = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
        assert_eq!(
            (describe_type(&either), describe_type(&json!({}))),
            ("string or integer".into(), "any".into())
        );
    }

    #[test]
    fn every_argument_of_every_tool_has_a_description() {
        let rows: Vec<String> =
            catalogue::all().filter(|tool| is_listed(tool)).flat_map(argument_rows).collect();
        let post =
            rows.iter().find(|row| row.starts_with("| board_post | `text` | string | yes |"));
        assert!(post.is_some(), "{rows:#?}");
        let bare: Vec<_> = rows.iter().filter(|row| row.ends_with("|  |\n")).collect();
        assert!(bare.is_empty(), "{bare:#?}");
    }
}
