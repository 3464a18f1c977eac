//! The grants of the agent's file on the real CLI: those that it holds now, not those of the turn before.

use std::os::unix::fs::PermissionsExt as _;

use dalsegno::domain::tasks::State;
use serde_json::{Value, json};

use super::{Setup, WRITER};
use crate::providers::claude::api::Play;

fn writer(grants: &str) -> String {
    WRITER.replace("model:", &format!("{grants}model:"))
}

/// Returns the tools that the last call offered to the model.
fn offered_tools(setup: &Setup) -> Vec<String> {
    let requests = setup.api.requests();
    let tools = requests.last().unwrap()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

impl Setup {
    /// Runs a turn in which the model calls a tool once. Returns the turn's flags and the tool's result.
    async fn calls(&self, tool: &'static str, input: Value) -> (Vec<String>, String) {
        self.api.plays([Play::Calls(tool, input)]);
        let task = self.run_prompt("Do it.").await;
        let flags = self.fixture.turns(&task).await.pop().unwrap().flags;
        (flags, self.api.last_messages().pop().unwrap())
    }
}

#[tokio::test]
async fn tools_and_rules_follow_the_current_agent_file() {
    let Some(setup) = Setup::new(&[]).await else { return };
    setup.api.counts();
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    assert_eq!(offered_tools(&setup), Vec::<String>::new(), "nothing is granted by default");

    // A comma within a rule is part of the rule, here and in the CLI.
    fixture.write_agent("writer", &writer("tools: Read, Bash(touch one,two:*)\n"));
    let (flags, _) = setup.calls("Bash", json!({ "command": "touch one,two" })).await;
    assert_eq!(flags, Vec::<String>::new());
    assert_eq!(offered_tools(&setup), ["Bash", "Read"]);
    let (flags, result) = setup.calls("Bash", json!({ "command": "touch three" })).await;
    assert_eq!(flags, ["tool_denied: Bash"], "{result}");

    fixture.write_agent("writer", &writer("tools: Bash\ndisallowedTools: Bash(touch:*)\n"));
    let (flags, result) = setup.calls("Bash", json!({ "command": "touch four" })).await;
    assert_eq!(flags, ["tool_denied: Bash"], "{result}");

    // `Grep` does not exist in the CLI's bare mode. An unknown name is reported, not skipped.
    fixture.write_agent("writer", &writer("tools: Grep, Grepp\n"));
    let task = setup.run_prompt("Look.").await;
    assert_eq!(offered_tools(&setup), ["Grep"]);
    assert_eq!(fixture.turns(&task).await[0].flags, ["tool_missing: Grepp"]);

    fixture.write_agent("writer", WRITER);
    setup.run_prompt("Last.").await;
    assert_eq!(offered_tools(&setup), Vec::<String>::new(), "earlier grants are not kept");
    assert_eq!(setup.fixture.sessions().await.len(), 1, "a changed grant keeps the session");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_granted_workspace_is_created_and_paths_outside_stay_closed() {
    let Some(setup) = Setup::new(&[]).await else { return };
    setup.api.counts();
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let workspaces = fixture.folder().join("data/workspaces");
    let workspace = workspaces.join(fixture.campaign.id.to_string());
    setup.run_prompt("One.").await;
    assert!(!workspaces.exists(), "created only when granted");

    let grants = "tools: Write\npermissionMode: acceptEdits\nworkspace: true\n";
    fixture.write_agent("writer", &writer(grants));
    let inside = workspace.join("note.txt");
    let (flags, result) =
        setup.calls("Write", json!({ "file_path": inside, "content": "Ahoy." })).await;
    assert_eq!(flags, Vec::<String>::new(), "{result}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "Ahoy.");
    for folder in [&workspaces, &workspace] {
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
    let outside = fixture.folder().join("note.txt");
    let (flags, result) =
        setup.calls("Write", json!({ "file_path": outside, "content": "Ahoy." })).await;
    assert_eq!(flags, ["tool_denied: Write"], "{result}");
    assert!(!outside.exists());

    fixture.write_agent("writer", &writer("tools: Write\npermissionMode: acceptEdits\n"));
    let (flags, _) = setup.calls("Write", json!({ "file_path": inside, "content": "No." })).await;
    assert_eq!(flags, ["tool_denied: Write"], "the folder is not passed any more");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_server_gets_its_declared_variables_and_not_the_credential() {
    let Some(setup) = Setup::new(&[("agents.variables", "[\"BOARD_TOKEN\"]")]).await else {
        return;
    };
    let setup =
        Setup { fixture: setup.fixture.with_variable("BOARD_TOKEN", "planted-token"), ..setup };
    let fixture = &setup.fixture;
    let seen = fixture.folder().join("seen");
    let script = format!("env > '{}'; exec cat > /dev/null", seen.display());
    let server = json!({ "command": "/bin/sh", "args": ["-c", script], "env": { "TOKEN": "${BOARD_TOKEN}" } });
    let sums = json!({ "type": "http", "url": format!("{}/mcp", setup.api.url()) });
    let servers = json!({ "mcpServers": { "board": server, "sums": sums } });
    std::fs::write(fixture.folder().join("servers.json"), servers.to_string()).unwrap();
    let grants = "tools: mcp__sums__add\nmcpServers: ../servers.json\nmaxTurns: 2\n";
    fixture.write_agent("writer", &writer(grants));
    let worker = fixture.start_worker().await;
    let (flags, result) = setup.calls("mcp__sums__add", json!({ "a": 2, "b": 3 })).await;
    assert!(result.contains("the sum is 5"), "{result}");
    assert_eq!(flags, ["tool_server_missing: board"], "the server is a fake");
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("TOKEN=planted-token"), "{seen}");
    assert!(!seen.contains(super::SECRET), "a tool got the credential: {seen}");

    // Two calls of the model are allowed, and the second wants a third.
    let add = || Play::Calls("mcp__sums__add", json!({ "a": 2, "b": 3 }));
    setup.api.plays([add(), add(), add()]);
    let task = fixture.ended(&fixture.add("On and on.").await).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_deref().unwrap().contains("exceeded its limit of rounds"), "{task:?}");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn an_unset_variable_and_unrestricted_permissions_as_root_fail_with_a_reason() {
    let Some(setup) = Setup::new(&[("agents.variables", "[\"BOARD_TOKEN\"]")]).await else {
        return;
    };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let named = "mcpServers: { board: { command: board, env: { T: \"${BOARD_TOKEN}\" } } }\n";
    fixture.write_agent("writer", &writer(named));
    let task = fixture.ended(&fixture.add("One.").await).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_deref().unwrap().contains("BOARD_TOKEN, which is not set"), "{task:?}");
    if rustix::process::geteuid().is_root() {
        fixture.write_agent("writer", &writer("permissionMode: bypassPermissions\n"));
        let task = fixture.ended(&fixture.add("Two.").await).await;
        let error = task.error.unwrap();
        assert!(error.contains("bypassPermissions as root: run the service as another"), "{error}");
    }
    assert_eq!(setup.api.requests().len(), 0);
    fixture.settled().await;
    worker.stop().await;
}
