//! The commands about conversations, with the real binary on a real database.

mod add_file;
mod agents;
mod audit;
mod bad_input;
mod blackboard;
mod board;
mod campaign_commands;
mod campaigns;
mod cleanups;
mod credentials;
mod evals;
mod facts;
mod flows;
mod in_campaign;
mod keys;
mod mcp;
mod memory;
mod named_commands;
mod operator_commands;
mod reference;
mod remote;
mod remote_waiting;
mod service;
mod sessions;
mod tasks;
mod terminal;
mod turns;
mod waiting;
mod webhooks;

use std::{path::Path, process::Stdio};

pub use self::sessions::compact;
use dalsegno::domain::amount::Limit;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, process::Child};

use crate::{app::SOON, cluster::scratch_folder, conversations::world::World, service::dalsegno};

/// A campaign, and a working folder without agents of its own.
struct Fixture {
    world: World,
    folder: TempDir,
}

/// Output of a command.
#[derive(Debug)]
struct CommandOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Fixture {
    async fn new() -> Self {
        Self::with_limit(Limit::default()).await
    }

    async fn with_limit(limit: Limit) -> Self {
        Self { world: World::with_limit(limit).await, folder: scratch_folder() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn campaign(&self) -> String {
        self.world.campaign.id.to_string()
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = dalsegno(self.path());
        command.args(arguments).env("DATABASE_URL", self.world.url());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().unwrap()
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(arguments, "").await
    }

    async fn run_with(&self, arguments: &[&str], input: &str) -> CommandOutput {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input may end before it is written.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        ended(child).await
    }

    /// Returns the JSON output of a command that succeeds.
    async fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        output.json()
    }

    /// Runs `task add` for the copywriter.
    async fn add(&self, prompt: &str, more: &[&str]) -> Value {
        let campaign = self.campaign();
        let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", prompt];
        self.json(&[&add, more].concat()).await
    }
}

impl CommandOutput {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn has(&self, words: &str) -> bool {
        self.stdout.contains(words) || self.stderr.contains(words)
    }
}

async fn ended(child: Child) -> CommandOutput {
    let output = tokio::time::timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
