//! Turns on the real Claude CLI, which calls an API of the tests.

mod attachments;
mod budgets;
mod disk_space;
mod ends;
mod failover;
mod figures;
mod forks;
mod grants;
mod hosts;
mod interrupts;
mod limits;
mod memory;
mod nodes;
mod output_files;
mod prices;
mod reruns;
mod structured_results;
mod transcripts;
mod warm_processes;
mod warnings;

use dalsegno::domain::{amount::Limit, tasks::Task};

use super::Fixture;
use crate::providers::claude::{api::Api, cli::Cli, host::SECRET};

pub const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: claude\nmodel: claude-sonnet-5\n---\nYou write.\n";

/// A campaign whose writer runs on the CLI, and the API that it calls.
pub struct Setup {
    pub api: Api,
    pub fixture: Fixture,
}

impl Setup {
    /// Starts with the real CLI; `None` where it cannot be obtained.
    pub async fn new(settings: &[(&str, &str)]) -> Option<Self> {
        Self::on(&Cli::real()?, settings).await
    }

    pub async fn on(cli: &Cli, settings: &[(&str, &str)]) -> Option<Self> {
        Self::made(cli, settings, Limit::default()).await
    }

    /// Like `new`, with a spending limit of the campaign.
    pub async fn with_limit(limit: Limit) -> Option<Self> {
        Self::made(&Cli::real()?, &[], limit).await
    }

    async fn made(cli: &Cli, settings: &[(&str, &str)], limit: Limit) -> Option<Self> {
        let api = Api::start().await;
        let (url, program) = (api.url(), cli.program().display().to_string());
        let secrets = tempfile::tempdir().unwrap();
        let file = secrets.path().join("key");
        std::fs::write(&file, SECRET).unwrap();
        // The folder stays as long as the test's process; its content is not secret.
        let file = secrets.keep().join("key");
        let credential = |name: &str| {
            format!("{{ name = \"{name}\", kind = \"api_key\", file = \"{}\" }}", file.display())
        };
        let credentials = format!("[{}, {}]", credential("main"), credential("spare"));
        let usual = [
            ("claude.program", program.as_str()),
            ("claude.base_url", url.as_str()),
            ("claude.credentials", credentials.as_str()),
            ("claude.max_retries", "0"),
        ];
        let settings: Vec<_> = usual.into_iter().chain(settings.iter().copied()).collect();
        let fixture = Fixture::with_limit(&settings, limit).await;
        fixture.write_agent("writer", WRITER);
        Some(Self { api, fixture })
    }

    /// Adds a task and waits until it is done.
    pub async fn run_prompt(&self, prompt: &str) -> Task {
        let task = self.fixture.add(prompt).await;
        self.fixture.done(&task).await
    }
}

impl Setup {
    /// Returns the starting point of each successful turn, in order.
    pub async fn session_starts(&self) -> Vec<String> {
        let feed = self.fixture.feed().await.into_iter();
        let done = feed.filter(|event| event.kind == "turn.done");
        done.filter_map(|event| event.data["began"].as_str().map(str::to_owned)).collect()
    }
}
