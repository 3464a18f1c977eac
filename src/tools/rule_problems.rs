//! Problems of the tool rules in an agent's file that its parser cannot see: it knows neither the tools nor who may use them.

use super::{SERVER, catalogue, permissions::named_tool, tool::Access};
use crate::domain::{
    agents::{Agent, AgentFile, corrected_rule},
    files::nearest,
};

/// A rule that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The key of the rule.
    pub key: &'static str,
    pub message: String,
    pub fix: String,
}

const TOOLS: &str = "tools";
const DENIED: &str = "disallowedTools";

/// Lists the rules for unknown servers and tools, and for tools that the agent does not get although its file names them. A rule is not
/// judged by a key that has a problem itself.
pub fn rule_problems(file: &AgentFile) -> Vec<RuleProblem> {
    let agent = &*file.agent;
    let grants = &agent.grants;
    let knows_servers = !file.has_problem("mcpServers");
    let mut problems = Vec::new();
    for (key, rules) in [(TOOLS, &grants.tools), (DENIED, &grants.disallowed_tools)] {
        for rule in rules {
            let server = knows_servers.then(|| unknown_server(agent, rule)).flatten();
            let unknown = server.or_else(|| unknown_tool(rule)).or_else(|| misspelt_tool(rule));
            problems.extend(unknown.map(|(message, fix)| RuleProblem { key, message, fix }));
        }
    }
    problems.extend(grants.tools.iter().filter_map(|rule| withheld_tool(file, rule)));
    problems
}

/// Returns the problem of a rule whose server is neither the service nor defined in the file, and its fix.
fn unknown_server(agent: &Agent, rule: &str) -> Option<(String, String)> {
    let (rest, servers) = (rule.strip_prefix("mcp__")?, &agent.grants.mcp_servers);
    let names = || servers.names().chain([SERVER]);
    // A name may contain `__` itself.
    let is_of = |name: &str| {
        rest.strip_prefix(name).is_some_and(|it| it.is_empty() || it.starts_with("__"))
    };
    if names().any(is_of) {
        return None;
    }
    let server = rest.split("__").next().unwrap_or(rest);
    let fix = match nearest(server, names()) {
        Some(near) => format!("mcp__{near}{} (the closest match)", &rest[server.len()..]),
        None => format!("a server `{server}` below `mcpServers`, or remove the rule"),
    };
    Some((format!("`{rule}` names the MCP server `{server}`, which does not exist"), fix))
}

fn unknown_tool(rule: &str) -> Option<(String, String)> {
    let name = named_tool(rule)?;
    if catalogue::find(name).is_some() {
        return None;
    }
    let fix = match nearest(name, catalogue::all().map(|tool| tool.name)) {
        Some(name) => format!("mcp__{SERVER}__{name} (the closest match)"),
        None => format!("mcp__{SERVER} for all tools of the service"),
    };
    Some((format!("`{rule}` names an unknown tool of the service"), fix))
}

fn misspelt_tool(rule: &str) -> Option<(String, String)> {
    let corrected = corrected_rule(rule)?;
    Some((
        format!("`{rule}` names an unknown tool of Claude Code"),
        format!("{corrected} (the closest match)"),
    ))
}

/// Returns the problem of a rule for a tool that the agent does not get: it is for operators or the lead, needs a path of the blackboard, or
/// the right to write facts.
fn withheld_tool(file: &AgentFile, rule: &str) -> Option<RuleProblem> {
    let tool = catalogue::find(named_tool(rule)?)?;
    let blackboard = &file.agent.grants.blackboard;
    let (why, decided_by, fix) = match tool.who {
        Access::Operators => ("only operators may use the tool", TOOLS, "remove the rule"),
        Access::Lead if !file.agent.lead => {
            ("only the lead may use the tool", "lead", "remove the rule, or add `lead: true`")
        }
        Access::BlackboardReaders if blackboard.read.is_empty() => {
            ("the file grants no path to read", "blackboard", "blackboard: { read: [/] }")
        }
        Access::BlackboardWriters if blackboard.write.is_empty() => (
            "the file grants no path to write",
            "blackboard",
            "blackboard: { read: [/], write: [/plan] }",
        ),
        Access::FactWriters if !file.agent.writes_facts => {
            ("the file does not let the agent write facts", "writes_facts", "writes_facts: true")
        }
        _ => return None,
    };
    let message = format!("`{rule}` has no effect: {why}");
    let problem = RuleProblem { key: TOOLS, message, fix: fix.to_owned() };
    (!file.has_problem(decided_by)).then_some(problem)
}
