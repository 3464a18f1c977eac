//! Tools and permissions of an agent, in the keys of Claude Code's own agent files.

use serde::Serialize;
use serde_json::Value;

use super::{
    BlackboardGrants, BlackboardPath,
    servers::{self, ParseContext, Servers},
};
use crate::domain::files::Fields;

#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = AgentGrants)]
pub struct Grants {
    /// Rules of allowed tools: `Read`, `Bash(git log:*)`, `mcp__board__post`. Other tools cannot be used.
    pub tools: Vec<String>,
    /// Rules of tools that are never allowed, even if another rule grants them.
    pub disallowed_tools: Vec<String>,
    pub permission_mode: PermissionMode,
    /// Maximum number of model calls in one turn.
    pub max_turns: Option<u32>,
    #[schema(value_type = Vec<String>)]
    pub mcp_servers: Servers,
    /// True: the agent works in a folder that it shares with the campaign's other agents of this setting.
    pub workspace: bool,
    pub blackboard: BlackboardGrants,
    /// Flow templates that the agent may start, if it may start any. Null: all.
    pub flows: Option<Vec<String>>,
}

/// The treatment of calls that no rule names. No user is there to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    #[default]
    DontAsk,
    /// Changes of files in the agent's own folders are allowed.
    AcceptEdits,
    Plan,
    BypassPermissions,
}

/// Claude Code's `default` asks the user. No user is there to answer, so that it is the same as `dontAsk`.
const MODES: [(&str, PermissionMode); 5] = [
    ("default", PermissionMode::DontAsk),
    ("dontAsk", PermissionMode::DontAsk),
    ("acceptEdits", PermissionMode::AcceptEdits),
    ("plan", PermissionMode::Plan),
    ("bypassPermissions", PermissionMode::BypassPermissions),
];
/// Built-in tools of Claude Code. Newer versions may have more.
const BUILT_IN: [&str; 36] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];
/// Built-in tools that can send requests to any address.
const SENDERS: [&str; 2] = ["Bash", "WebFetch"];
/// Tool that shows the agent files in its folders, images and PDF included.
const READER: &str = "Read";
/// Tools that `acceptEdits` allows in the agent's own folders.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

impl Grants {
    /// The tools that come with Claude Code and that its rules name: `Read`, and `Bash` for `Bash(ls:*)`.
    pub fn built_in_tools(&self) -> Vec<String> {
        let mut names = Vec::new();
        for rule in self.tools.iter().filter(|rule| !rule.starts_with("mcp__")) {
            let name = tool(rule).to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns true if the agent could send requests to services on this machine directly, besides using their tools.
    pub fn can_reach_local_services(&self) -> bool {
        self.mcp_servers.has_program()
            || self.built_in_tools().iter().any(|tool| SENDERS.contains(&tool.as_str()))
    }

    /// Returns true if the agent can read files in its working directory.
    pub fn can_read_files(&self) -> bool {
        self.tools.iter().any(|rule| tool(rule) == READER)
    }

    /// Returns true if the agent can write files in its working directory.
    pub fn can_write_files(&self) -> bool {
        let mut names = self.tools.iter().map(|rule| tool(rule));
        names.any(|tool| tool == "Bash" || EDITORS.contains(&tool))
    }

    /// Lists the rules for calls that need no permission. In the mode `acceptEdits`, rules for editing tools without a path are left out:
    /// they would allow changes outside of the agent's own folders.
    pub fn allowed_rules(&self) -> Vec<String> {
        let is_left_to_mode = |rule: &str| {
            self.permission_mode == PermissionMode::AcceptEdits && EDITORS.contains(&rule)
        };
        self.tools.iter().filter(|rule| !is_left_to_mode(rule)).cloned().collect()
    }
}

pub(super) fn read(fields: &mut Fields<'_>, around: &ParseContext<'_>) -> Grants {
    let grants = Grants {
        tools: fields.rules("tools"),
        disallowed_tools: fields.rules("disallowedTools"),
        permission_mode: fields.one_of("permissionMode", &MODES).unwrap_or_default(),
        max_turns: fields.number("maxTurns", 1..=1000).and_then(|n| u32::try_from(n).ok()),
        mcp_servers: servers::read(fields, around),
        workspace: fields.flag("workspace"),
        blackboard: read_blackboard(fields),
        flows: fields.names_if_set("flows"),
    };
    check_rules(fields, "tools", &grants.tools);
    check_rules(fields, "disallowedTools", &grants.disallowed_tools);
    grants
}

/// `{ read: [/plan], write: [/plan/parts] }`, each a list or one path.
fn read_blackboard(fields: &mut Fields<'_>) -> BlackboardGrants {
    const KEY: &str = "blackboard";
    const EXAMPLE: &str = "{ read: [/], write: [/plan] }";
    let found = fields.value(KEY, EXAMPLE, Value::is_object).map(|found| found.value);
    let Some(Value::Object(granted)) = found else {
        return BlackboardGrants::default();
    };
    let mut grants = BlackboardGrants::default();
    for (verb, paths) in &granted {
        let place = match verb.as_str() {
            "read" => &mut grants.read,
            "write" => &mut grants.write,
            _ => {
                let message = format!("grants `{verb}`, which does not exist");
                fields.fail(KEY, message, format!("{KEY}: {EXAMPLE}"));
                continue;
            }
        };
        let listed = match paths {
            Value::Array(paths) => paths.iter().collect(),
            Value::Null => Vec::new(),
            one => vec![one],
        };
        for path in listed {
            match BlackboardPath::parse(path.as_str().unwrap_or_default()) {
                Ok(path) => place.push(path),
                Err(_) => {
                    let message = format!("has {path} below `{verb}`, which is not a valid path");
                    let fix = "/key/key from the top of the document, or / for all of it";
                    fields.fail(KEY, message, format!("{KEY}: {fix}"));
                }
            }
        }
    }
    grants
}

fn check_rules(fields: &mut Fields<'_>, key: &'static str, rules: &[String]) {
    for rule in rules {
        if let Some((message, fix)) = rule_problem(rule) {
            fields.fail(key, format!("`{rule}` {message}"), format!("{key}: {fix}"));
        }
    }
}

/// Returns the problem of a rule, and its fix. The CLI would ignore such a rule silently, or with a warning that goes unread.
fn rule_problem(rule: &str) -> Option<(&'static str, &'static str)> {
    const FIX: &str = "names such as Read, Bash(git log:*), mcp__board__post";
    let name = tool(rule);
    let detail = &rule[name.len()..];
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(fine);
    if rule == "*" || rule == "mcp__*" {
        return Some(("matches everything, which Claude Code refuses", FIX));
    }
    // `mcp__board__*` is allowed: all tools of one server.
    let is_all_of_server = name.starts_with("mcp__") && name[5..].ends_with("__*");
    if !is_all_of_server && !is_name {
        return Some(("is not a valid rule", FIX));
    }
    let is_closed = detail.is_empty() || (detail.ends_with(')') && detail.len() > 2);
    (!is_closed).then_some(("is not closed", "Bash(git log:*), with both brackets"))
}

/// Corrects a rule that misspells a built-in tool: its name differs by letter case, or by one letter. Other unknown names may belong to a
/// newer Claude Code.
pub fn corrected_rule(rule: &str) -> Option<String> {
    let name = tool(rule);
    if rule.starts_with("mcp__") || BUILT_IN.contains(&name) {
        return None;
    }
    let distance =
        |known: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let known = BUILT_IN.into_iter().min_by_key(distance).filter(|known| distance(known) <= 1)?;
    Some(format!("{known}{}", &rule[name.len()..]))
}

fn tool(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_tool_of_claude_code_is_corrected() {
        let corrected = corrected_rule;
        assert_eq!(corrected("Webfetch").as_deref(), Some("WebFetch"));
        assert_eq!(corrected("bash(git log:*)").as_deref(), Some("Bash(git log:*)"));
        assert_eq!(corrected("Web_Search").as_deref(), Some("WebSearch"));
        for rule in ["WebFetch", "Bash(git log:*)", "NewTool", "mcp__board__read"] {
            assert_eq!(corrected(rule), None, "{rule}");
        }
    }

    #[test]
    fn a_rule_that_the_cli_would_ignore_is_reported() {
        for rule in ["Read", "Bash(git log:*, git diff:*)", "mcp__board", "mcp__board__*"] {
            assert_eq!(rule_problem(rule), None, "{rule}");
        }
        for rule in ["*", "mcp__*", "Bash(ls", "Bash()", "Read Grep", "(ls)", "mcp__a b"] {
            assert!(rule_problem(rule).is_some(), "{rule}");
        }
    }

    #[test]
    fn edit_permissions_are_left_to_the_permission_mode() {
        let tools = ["Read", "Write", "Edit(/notes/**)", "Bash(ls:*)", "Bash(pwd)", "mcp__a__b"];
        let grants = Grants { tools: tools.map(str::to_owned).to_vec(), ..Grants::default() };
        assert_eq!(grants.built_in_tools(), ["Read", "Write", "Edit", "Bash"]);
        assert_eq!(grants.allowed_rules(), tools);
        let grants = Grants { permission_mode: PermissionMode::AcceptEdits, ..grants };
        assert_eq!(
            grants.allowed_rules(),
            ["Read", "Edit(/notes/**)", "Bash(ls:*)", "Bash(pwd)", "mcp__a__b"]
        );
    }
}
