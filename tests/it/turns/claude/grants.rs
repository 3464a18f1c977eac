//! The grants of the agent's file on the real CLI: those that it holds now, not those of the turn before.

use std::os::unix::fs::PermissionsExt as _;

use dalsegno::domain::tasks::State;
use serde_json::{Value, json};

use super::{Stage, WRITER};
use crate::providers::claude::api::Play;

fn writer(grants: &str) -> String {
    WRITER.replace("model:", &format!("{grants}model:"))
}

/// Returns the tools that the last call offered to the model.
fn offered(stage: &Stage) -> Vec<String> {
    let requests = stage.api.requests();
    let tools = requests.last().unwrap()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

impl Stage {
    /// Runs a turn in which the model calls a tool once. Returns the turn's flags and the tool's result.
    async fn calls(&self, tool: &'static str, input: Value) -> (Vec<String>, String) {
        self.api.plays([Play::Calls(tool, input)]);
        let task = self.says("Do it.").await;
        let flags = self.ground.turns(&task).await.pop().unwrap().flags;
        (flags, self.api.last_messages().pop().unwrap())
    }
}

#[tokio::test]
async fn tools_and_rules_are_those_of_the_file_as_it_is_now() {
    let Some(stage) = Stage::new(&[]).await else { return };
    stage.api.counts();
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("One.").await;
    assert_eq!(offered(&stage), Vec::<String>::new(), "nothing is granted by itself");

    // A comma within a rule is part of the rule, here and in the CLI.
    ground.write_agent("writer", &writer("tools: Read, Bash(touch one,two:*)\n"));
    let (flags, _) = stage.calls("Bash", json!({ "command": "touch one,two" })).await;
    assert_eq!(flags, Vec::<String>::new());
    assert_eq!(offered(&stage), ["Bash", "Read"]);
    let (flags, result) = stage.calls("Bash", json!({ "command": "touch three" })).await;
    assert_eq!(flags, ["tool_denied: Bash"], "{result}");

    ground.write_agent("writer", &writer("tools: Bash\ndisallowedTools: Bash(touch:*)\n"));
    let (flags, result) = stage.calls("Bash", json!({ "command": "touch four" })).await;
    assert_eq!(flags, ["tool_denied: Bash"], "{result}");

    // `Grep` does not exist in the CLI's bare mode. An unknown name is reported, not skipped.
    ground.write_agent("writer", &writer("tools: Grep, Grepp\n"));
    let task = stage.says("Look.").await;
    assert_eq!(offered(&stage), ["Grep"]);
    assert_eq!(ground.turns(&task).await[0].flags, ["tool_missing: Grepp"]);

    ground.write_agent("writer", WRITER);
    stage.says("Last.").await;
    assert_eq!(offered(&stage), Vec::<String>::new(), "what was granted before is not remembered");
    assert_eq!(stage.ground.sessions().await.len(), 1, "a grant is no reason for a new session");
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_workspace_is_made_for_the_campaign_and_what_is_outside_stays_closed() {
    let Some(stage) = Stage::new(&[]).await else { return };
    stage.api.counts();
    let ground = &stage.ground;
    let worker = ground.work().await;
    let workspaces = ground.folder().join("data/workspaces");
    let workspace = workspaces.join(ground.campaign.id.to_string());
    stage.says("One.").await;
    assert!(!workspaces.exists(), "made only where it is granted");

    let grants = "tools: Write\npermissionMode: acceptEdits\nworkspace: true\n";
    ground.write_agent("writer", &writer(grants));
    let inside = workspace.join("note.txt");
    let (flags, result) =
        stage.calls("Write", json!({ "file_path": inside, "content": "Ahoy." })).await;
    assert_eq!(flags, Vec::<String>::new(), "{result}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "Ahoy.");
    for folder in [&workspaces, &workspace] {
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
    let outside = ground.folder().join("note.txt");
    let (flags, result) =
        stage.calls("Write", json!({ "file_path": outside, "content": "Ahoy." })).await;
    assert_eq!(flags, ["tool_denied: Write"], "{result}");
    assert!(!outside.exists());

    ground.write_agent("writer", &writer("tools: Write\npermissionMode: acceptEdits\n"));
    let (flags, _) = stage.calls("Write", json!({ "file_path": inside, "content": "No." })).await;
    assert_eq!(flags, ["tool_denied: Write"], "the folder is not handed in any more");
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_server_gets_the_variables_that_the_file_may_name_and_not_the_login() {
    let Some(stage) = Stage::new(&[("agents.variables", "[\"BOARD_TOKEN\"]")]).await else {
        return;
    };
    let stage =
        Stage { ground: stage.ground.with_variable("BOARD_TOKEN", "planted-token"), ..stage };
    let ground = &stage.ground;
    let seen = ground.folder().join("seen");
    let script = format!("env > '{}'; exec cat > /dev/null", seen.display());
    let server = json!({ "command": "/bin/sh", "args": ["-c", script], "env": { "TOKEN": "${BOARD_TOKEN}" } });
    let sums = json!({ "type": "http", "url": format!("{}/mcp", stage.api.url()) });
    let servers = json!({ "mcpServers": { "board": server, "sums": sums } });
    std::fs::write(ground.folder().join("servers.json"), servers.to_string()).unwrap();
    let grants = "tools: mcp__sums__add\nmcpServers: ../servers.json\nmaxTurns: 2\n";
    ground.write_agent("writer", &writer(grants));
    let worker = ground.work().await;
    let (flags, result) = stage.calls("mcp__sums__add", json!({ "a": 2, "b": 3 })).await;
    assert!(result.contains("the sum is 5"), "{result}");
    assert_eq!(flags, ["tool_server_missing: board"], "it is no real server");
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("TOKEN=planted-token"), "{seen}");
    assert!(!seen.contains(super::SECRET), "the login is not for tools: {seen}");

    // Two calls of the model are allowed, and the second wants a third.
    let add = || Play::Calls("mcp__sums__add", json!({ "a": 2, "b": 3 }));
    stage.api.plays([add(), add(), add()]);
    let task = ground.ended(&ground.add("On and on.").await).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_deref().unwrap().contains("exceeded its limit of rounds"), "{task:?}");
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_variable_that_is_not_set_and_leave_for_everything_as_root_fail_in_words() {
    let Some(stage) = Stage::new(&[("agents.variables", "[\"BOARD_TOKEN\"]")]).await else {
        return;
    };
    let ground = &stage.ground;
    let worker = ground.work().await;
    let named = "mcpServers: { board: { command: board, env: { T: \"${BOARD_TOKEN}\" } } }\n";
    ground.write_agent("writer", &writer(named));
    let task = ground.ended(&ground.add("One.").await).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_deref().unwrap().contains("BOARD_TOKEN, which is not set"), "{task:?}");
    if rustix::process::geteuid().is_root() {
        ground.write_agent("writer", &writer("permissionMode: bypassPermissions\n"));
        let task = ground.ended(&ground.add("Two.").await).await;
        let error = task.error.unwrap();
        assert!(error.contains("bypassPermissions as root: run the service as another"), "{error}");
    }
    assert_eq!(stage.api.requests().len(), 0);
    ground.settled().await;
    worker.stop().await;
}
