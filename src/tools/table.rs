//! Table of the tools and of the roles that may use them, made from the tools themselves.

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
    catalogue::all().filter(|tool| !tool.name.starts_with("trial_")).map(Line::of).collect()
}

const YES: &str = "yes";
const NO: &str = "no";
const IF_NAMED: &str = "if its file names it";
const IF_GRANTED: &str = "if its file grants a path";

impl Line {
    fn of(tool: &tool::Tool) -> Self {
        let (agent, lead, operator) = match tool.who {
            Access::Everybody => (YES, YES, YES),
            Access::Agents => (YES, YES, NO),
            Access::Lead => (NO, YES, YES),
            Access::LeadAndNamed => (IF_NAMED, YES, YES),
            #[cfg(feature = "test-fakes")]
            Access::Named => (IF_NAMED, IF_NAMED, NO),
            Access::BlackboardReaders | Access::BlackboardWriters => (IF_GRANTED, IF_GRANTED, YES),
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
    text
}

const HEAD: &str = "\
# Who may use which tool

`dalsegno mcp tools` prints this from the code. An agent has a tool only if its file also grants it: `mcp__dalsegno` for all that its role may use,
`mcp__dalsegno__board_post` for one.

| tool | agent | lead | operator | arguments that not all have |
|---|---|---|---|---|
";
