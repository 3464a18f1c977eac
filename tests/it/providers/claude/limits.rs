//! Resource limits of the CLI and its children.

use std::{fs, path::Path};

use dalsegno::providers::Class;
use serde_json::json;

use super::{
    api::{Api, Play},
    cli::Cli,
    host::{Host, StoredConversation},
};
use crate::providers::requests::RETRY;

const GIB: u64 = 1 << 30;

fn with_bash() -> StoredConversation {
    let mut stored = StoredConversation::new();
    stored.conversation.grants.built_in = vec!["Bash".to_owned()];
    stored.conversation.grants.allowed = vec!["Bash".to_owned()];
    stored
}

/// Returns the result that the model gets for a command that it runs.
async fn runs(host: &Host, api: &Api, command: &str) -> String {
    api.plays([Play::Calls("Bash", json!({ "command": command }))]);
    let outcome = with_bash().turn(host, "Run it.").await;
    assert!(outcome.message.text.starts_with("You said: result"), "{:?}", outcome.message);
    api.last_messages().pop().unwrap()
}

#[tokio::test]
async fn a_tool_over_its_memory_limit_fails_and_the_turn_continues() {
    let Some(cli) = Cli::real() else { return };
    let api = Api::start().await;
    let mut host = Host::new(&cli, &api);
    host.config.memory_max_bytes = GIB;
    // It contains no line break, so it is held in memory.
    let said = runs(&host, &api, "head -c 3000000000 /dev/zero | tail -n 1 | wc -c").await;
    assert!(said.contains("memory exhausted"), "{said}");
    host.config.file_max_bytes = 1 << 20;
    let said = runs(&host, &api, "head -c 3000000 /dev/zero > large; stat -c %s large").await;
    assert!(said.contains("1048576") && !said.contains("3000000\n"), "{said}");
}

#[tokio::test]
async fn a_cli_that_fails_at_its_limit_names_the_limit() {
    let Some(cli) = Cli::real() else { return };
    let api = Api::start().await;
    let mut host = Host::new(&cli, &api);
    host.config.memory_max_bytes = 500 << 20;
    let error = host.ask(StoredConversation::new().request("Hello.", false)).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.broke_down", RETRY), "{error}");
    assert!(error.to_string().contains("raise claude.memory_max_bytes"), "{error}");
    host.is_quiet().await;
}

/// The folder replaces the kernel's file system: it records writes, and provides the files to read.
#[tokio::test]
async fn control_group_limits_are_set_and_out_of_memory_kills_are_reported() {
    let groups = tempfile::tempdir().unwrap();
    let file = |group: &Path, name: &str| fs::read_to_string(group.join(name)).unwrap();
    let mut host = Host::with_fault("").await;
    host.config.cgroup = groups.path().to_owned();
    (host.config.memory_max_bytes, host.config.processes_max) = (2 * GIB, 300);
    StoredConversation::new().turn(&host, "Hello.").await;
    let group = fs::read_dir(groups.path()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(file(&group, "memory.max"), (2 * GIB).to_string());
    assert_eq!(
        (file(&group, "memory.swap.max"), file(&group, "pids.max")),
        ("0".into(), "300".into())
    );
    let name = group.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, format!("dalsegno-{}", file(&group, "cgroup.procs")));
    fs::remove_dir_all(&group).unwrap();

    let mut host = Host::with_fault("is killed for its memory").await;
    host.config.cgroup = groups.path().to_owned();
    host.passed.push(("FAKE_CGROUP".into(), groups.path().into()));
    let error = host.ask(StoredConversation::new().request("Hello.", false)).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.out_of_memory", Class::Fail), "{error}");

    host.config.cgroup = groups.path().join("none");
    let error = host.ask(StoredConversation::new().request("Hello.", false)).await.unwrap_err();
    assert_eq!(error.code, "claude.not_started", "{error}");
    assert!(error.to_string().contains("control group cannot be made"), "{error}");
}
