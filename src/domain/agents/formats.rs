//! The documented formats of agents, skills and nodes. `dalsegno reference` and the JSON Schemas for editors are made from them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Provider, agent, node, servers::ParseContext, skill};
use crate::domain::files::{Fields, FileFormat, KeyText};

/// Returns the format of `<agents.folder>/<name>.md`.
pub fn agent_format() -> FileFormat {
    let named = RefCell::default();
    let around = around(&[], &named);
    let mut fields = Fields::new("", BTreeMap::new());
    agent::read(&mut fields, "", String::new(), &around);
    FileFormat {
        title: "Agent file",
        keys: fields.into_keys(),
        texts: &AGENT_KEYS,
        example_text: "",
    }
}

/// Returns the context of a file that names nothing else.
fn around<'a>(providers: &'a [Provider], named: &'a RefCell<Vec<PathBuf>>) -> ParseContext<'a> {
    ParseContext { folder: Path::new(""), variables: &[], providers, named }
}

/// Returns the format of `<agents.skills_folder>/<name>/SKILL.md`.
pub fn skill_format() -> FileFormat {
    let mut fields = Fields::new("", BTreeMap::new());
    skill::read(&mut fields, "");
    FileFormat {
        title: "Skill file",
        keys: fields.into_keys(),
        texts: &SKILL_KEYS,
        example_text: "",
    }
}

/// Returns the format of `<agents.nodes_folder>/<name>.md`.
pub fn node_format() -> FileFormat {
    let mut fields = Fields::new("", BTreeMap::new());
    node::read_keys(&mut fields, "");
    FileFormat { title: "Node file", keys: fields.into_keys(), texts: &NODE_KEYS, example_text: "" }
}

const AGENT_KEYS: [KeyText; 38] = [
    KeyText::new("name", "", "copywriter", "Name of the agent, equal to the name of the file without `.md`."),
    KeyText::new(
        "description",
        "",
        "Writes articles and short copy in the client's voice",
        "Purpose of the agent in one line. Other agents read it in their roster.",
    ),
    KeyText::new(
        "provider",
        "`agents.provider`",
        "ollama",
        "Provider of the model: `claude`, `ollama`, the name of an endpoint (`[providers.NAME]` in the configuration), or `sim`, a simulation inside the service.",
    ),
    KeyText::new("model", "`agents.model`", "\"qwen3:8b\"", "Model, as the provider names it."),
    KeyText::new(
        "fallback_provider",
        "none",
        "sim",
        "Provider that takes over after `agents.fallback_after` consecutive failures of the agent's own provider.",
    ),
    KeyText::new(
        "fallback_model",
        "the default model of that provider",
        "sim-1",
        "Model of the fallback. Needs `fallback_provider`.",
    ),
    KeyText::new(
        "summariser",
        "none",
        "\"qwen3:14b\"",
        "Model of the same provider that writes a summary after the agent's model has failed twice.",
    ),
    KeyText::new(
        "window_tokens",
        "the window of the model",
        "32768",
        "Tokens of the window that the agent uses, up to the window of the model.",
    ),
    KeyText::new(
        "reserve_tokens",
        "a quarter of the window, between 1024 and 8192",
        "4096",
        "Tokens of the window that are reserved for the answer. Must be below `window_tokens`.",
    ),
    KeyText::new(
        "prepare_percent",
        "75",
        "70",
        "Percent of the space for the conversation at which a summary is prepared in the background.",
    ),
    KeyText::new(
        "apply_percent",
        "85",
        "80",
        "Percent of the space for the conversation at which the summary replaces old messages. Must be above `prepare_percent`.",
    ),
    KeyText::new(
        "rotate_at_tokens",
        "`sessions.rotate_at_tokens`",
        "100000",
        "Tokens at which the conversation continues in a new session with a summary: 1000 or more, or 0 for no limit.",
    ),
    KeyText::new(
        "ttl_days",
        "`sessions.ttl_days` of the provider",
        "60",
        "Days after its last use that a session of the agent is kept.",
    ),
    KeyText::new(
        "lead",
        "false",
        "true",
        "The agent answers posts without an addressee. One agent of an installation may be the lead.",
    ),
    KeyText::new(
        "mentions",
        "the value of `lead`",
        "true",
        "`@name` in the agent's answers creates tasks for other agents, within the limits of `[mentions]`.",
    ),
    KeyText::new(
        "session",
        "`continue`",
        "fresh",
        "Session of its tasks. `continue`: the agent's conversation in the campaign. `fresh`: a new one, which later tasks continue. `none`: one for this task alone. A task may set another mode.",
    ),
    KeyText::new(
        "history_window",
        "50",
        "20",
        "Number of posts of the board that a turn shows at most. 0: none.",
    ),
    KeyText::new(
        "warm",
        "false",
        "true",
        "Claude only: starts the CLI for the next turn in advance (`claude.ahead_max`, `claude.ahead_idle_secs`).",
    ),
    KeyText::new(
        "learns_facts",
        "false",
        "true",
        "A model extracts facts about the campaign's user from the agent's tasks. Needs `facts.extract`.",
    ),
    KeyText::new(
        "told_facts",
        "false",
        "true",
        "Each task shows the agent the facts about the campaign's user, up to `facts.told_max_bytes`.",
    ),
    KeyText::new(
        "writes_facts",
        "false",
        "true",
        "The agent may write facts about the campaign's user. `tools` has to grant `mcp__dalsegno__facts_write`, too.",
    ),
    KeyText::new(
        "skills",
        "none",
        "[editorial-style]",
        "Skills whose texts belong to the agent's system prompt.",
    ),
    KeyText::new(
        "tools",
        "none",
        "[Read, \"Bash(git log:*)\", mcp__dalsegno]",
        "Rules of the tools that the agent is offered and may call without permission. `mcp__dalsegno` grants the [tools of the service](mcp-tools.md), `mcp__dalsegno__NAME` one of them.",
    ),
    KeyText::new(
        "disallowedTools",
        "none",
        "[\"Bash(git push:*)\"]",
        "Rules of tools that are never allowed, even if `tools` grants them.",
    ),
    KeyText::new(
        "permissionMode",
        "`dontAsk`",
        "acceptEdits",
        "Claude only: treatment of calls that no rule names. `dontAsk` and `default` refuse them, `acceptEdits` allows changes of files in the agent's own folders, `plan` allows no changes, `bypassPermissions` allows everything and is refused for root.",
    ),
    KeyText::new(
        "maxTurns",
        "`agents.max_rounds`; on Claude no limit",
        "20",
        "Number of model calls in one turn at most.",
    ),
    KeyText::new(
        "mcpServers",
        "none",
        "{ board: { type: http, url: \"https://board.example/mcp\" } }",
        "Claude only: MCP servers by name, or a path to a JSON file with a map `mcpServers`. `${NAME}` stands for a variable that `agents.variables` lists.",
    )
    .with_schema(MCP_SERVERS),
    KeyText::new(
        "workspace",
        "false",
        "true",
        "Claude only: the agent works in a folder of this host that it shares with the campaign's other agents of this setting.",
    ),
    KeyText::new(
        "blackboard",
        "no access",
        "{ read: [/], write: [/plan] }",
        "Paths of the campaign's blackboard that the agent may read and write, as JSON Pointers; `/` is the whole document.",
    )
    .with_schema(BLACKBOARD),
    KeyText::new(
        "flows",
        "all",
        "[reviewed-text]",
        "Flow templates that the agent may start with the tool `flows_start`. A task may set another list.",
    ),
    KeyText::new("temperature", "that of the provider", "0.8", "Ollama and endpoints: temperature of the model."),
    KeyText::new("top_p", "that of the provider", "0.9", "Ollama and endpoints: nucleus sampling of the model."),
    KeyText::new("seed", "random", "42", "Ollama and endpoints with chat completions: seed of the model."),
    KeyText::new("think", "that of the provider", "low", "Thinking of models that offer it: switched on or off, or with this effort."),
    KeyText::new(
        "task_budget",
        "none",
        "2.5",
        "Cost of one task at most, in units of the currency of `[prices]`. Its last call may exceed it.",
    ),
    KeyText::new(
        "task_budget_tokens",
        "none",
        "500000",
        "Tokens of one task at most, of all its calls together. Its last call may exceed it.",
    ),
    KeyText::new(
        "on_limit",
        "wait",
        "fail",
        "Effect of the task's budget on a task that reaches it: it waits until the budget is raised, or fails.",
    ),
    KeyText::new(
        "result_schema",
        "none",
        "{ type: object, properties: { title: { type: string } }, required: [title] }",
        "JSON Schema that the answers to its tasks have to match, at most 32768 bytes. A task or a step of a flow may have another one.",
    )
    .with_schema(r#"{ "type": "object" }"#),
];

const SKILL_KEYS: [KeyText; 2] = [
    KeyText::new(
        "name",
        "",
        "editorial-style",
        "Name of the skill, equal to the name of its folder.",
    ),
    KeyText::new(
        "description",
        "",
        "Style rules for all texts of the team",
        "Purpose of the skill in one line.",
    ),
];

const NODE_KEYS: [KeyText; 3] = [
    KeyText::new(
        "name",
        "",
        "meta-analysis",
        "Name of the node, equal to the name of the file without `.md`.",
    ),
    KeyText::new(
        "description",
        "",
        "A role looks back at its own work in a campaign",
        "Purpose of the node in one line.",
    ),
    KeyText::new(
        "readings",
        "none",
        "[readings/house-rules.md]",
        "Required readings: files of UTF-8 text, by their path from the folder of the nodes. Put readings into a subfolder: each `.md` file directly in the folder is a node. Links out of that folder are refused. The text of the node and its readings have 262,144 bytes at most.",
    ),
];

const MCP_SERVERS: &str = r##"{
    "anyOf": [
        { "type": "string", "description": "Path to a JSON file, from the folder of the agents on." },
        { "$ref": "#/properties/mcpServers/definitions/servers" },
        { "type": "array", "items": { "$ref": "#/properties/mcpServers/definitions/servers" } }
    ],
    "definitions": {
        "servers": {
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z0-9_-]+$", "not": { "const": "dalsegno" } },
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "type": { "enum": ["stdio", "http", "sse"] },
                    "command": { "type": "string", "minLength": 1 },
                    "args": { "type": "array", "items": { "type": "string" } },
                    "env": { "type": "object", "additionalProperties": { "type": "string" } },
                    "url": { "type": "string", "minLength": 1 },
                    "headers": { "type": "object", "additionalProperties": { "type": "string" } }
                },
                "anyOf": [{ "required": ["command"] }, { "required": ["type", "url"] }]
            }
        }
    }
}"##;

const BLACKBOARD: &str = r#"{
    "type": "object",
    "properties": {
        "read": { "type": ["array", "string", "null"], "items": { "type": "string", "pattern": "^/" } },
        "write": { "type": ["array", "string", "null"], "items": { "type": "string", "pattern": "^/" } }
    },
    "additionalProperties": false
}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::files::{File, Problem};

    #[test]
    fn every_key_has_a_description() {
        for format in [agent_format(), skill_format(), node_format()] {
            assert_eq!(format.undocumented(), [""; 0], "{}", format.title);
        }
    }

    #[test]
    fn a_file_without_the_required_keys_is_refused() {
        let named = RefCell::default();
        let around = around(&[], &named);
        let empty = File::built_in("x", "---\n---\nText.\n");
        let missing = |problems: Vec<Problem>| {
            problems.into_iter().filter_map(|problem| problem.key).collect::<Vec<_>>()
        };
        let agent = agent::parse(&empty, &around).map(|parsed| missing(parsed.problems));
        assert_eq!(agent.unwrap(), agent_format().required());
        assert_eq!(skill::parse(&empty).map_err(missing).unwrap_err(), skill_format().required());
        let node = node::parse(&empty, Path::new(""), &around).map_err(missing);
        assert_eq!(node.unwrap_err(), node_format().required());
    }

    #[test]
    fn every_example_can_be_read() {
        let format = agent_format();
        let content = format!("{}You write.\n", format.example());
        let file = File {
            path: "copywriter.md".into(),
            name: "copywriter".into(),
            content: Ok(content),
            is_built_in: false,
        };
        let named = RefCell::default();
        let providers = ["ollama", "sim"].map(|name| Provider::parse(name).unwrap());
        let around = around(&providers, &named);
        let parsed = agent::parse(&file, &around).ok().unwrap();
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let agent = parsed.agent;
        assert!(agent.lead && agent.mentions && agent.warm && agent.told_facts);
        assert_eq!((agent.ttl_days, agent.budget.tokens), (Some(60), Some(500_000)));
    }
}
