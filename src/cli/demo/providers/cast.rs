//! The models of the demo, their servers, and the settings that lead to them.

use std::{fs, path::Path};

use super::{
    dialects::Dialect,
    script::{ANTHROPIC, CLAUDE, LOCAL, MODELS, ModelScript, OLLAMA, SIM},
    servers::ScriptedServer,
};
use crate::config::Config;

/// Settings that differ from the defaults, besides those of the servers.
const SETTINGS: [(&str, &str); 14] = [
    ("agents.provider", "sim"),
    ("agents.model", "sim-1"),
    ("claude.max_retries", "0"),
    ("database.max_connections", "12"),
    ("log.filter", "info,sqlx=error"),
    ("log.format", "json"),
    ("queue.poll_busy_ms", "100"),
    ("queue.poll_idle_ms", "500"),
    ("scheduler.enabled", "false"),
    ("shutdown.drain_timeout_secs", "0"),
    ("shutdown.stop_timeout_secs", "5"),
    ("sim.directives", "true"),
    // All agents work at once.
    ("worker.turns_slots", "3"),
    ("providers.anthropic.kind", "anthropic"),
];
/// Key of the scripted servers. It opens nothing else.
const KEY: &str = "sk-ant-of-the-demo-0000000000";

/// The models of this run and their servers.
pub(super) struct Cast {
    pub(super) models: Vec<ModelScript>,
    pub(super) servers: Vec<ScriptedServer>,
    /// Settings of the CLI, if it was found.
    cli: Option<[(&'static str, String); 2]>,
    /// The reason why the CLI takes no part.
    pub(super) left_out: Option<String>,
}

impl Cast {
    pub(super) async fn start(user: &Config) -> std::io::Result<Self> {
        let (cli, left_out) = match user.claude.find_program() {
            Ok(program) => {
                let path = user.claude.path.clone();
                let program = program.display().to_string();
                (Some([("claude.program", program), ("claude.path", path)]), None)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let models = MODELS.into_iter().filter(|model| cli.is_some() || model.provider != CLAUDE);
        let models: Vec<ModelScript> = models.collect();
        let mut servers = Vec::new();
        for model in &models {
            let dialect = match model.provider {
                CLAUDE => Dialect::MessagesOfCli,
                OLLAMA => Dialect::Ollama,
                LOCAL => Dialect::ChatCompletions,
                ANTHROPIC => Dialect::Messages,
                _ => continue,
            };
            servers.push(ScriptedServer::start(*model, dialect).await?);
        }
        Ok(Self { models, servers, cli, left_out })
    }

    pub(super) fn server(&self, provider: &str) -> Option<&ScriptedServer> {
        self.servers.iter().find(|server| server.model.provider == provider)
    }

    /// Returns the settings of the demo. Writes the key of the servers into the folder, where only this user can read it.
    pub(super) fn flags(&self, folder: &Path) -> std::io::Result<Vec<(String, String)>> {
        let key = folder.join("key");
        fs::write(&key, KEY)?;
        let key = key.display();
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let mut flags: Vec<(String, String)> = SETTINGS.into_iter().map(own).collect();
        let mut set = |key: &str, value: String| flags.push((key.to_owned(), value));
        for server in &self.servers {
            let url = &server.base_url;
            match server.model.provider {
                CLAUDE => set("claude.base_url", url.clone()),
                OLLAMA => set("ollama.base_url", url.clone()),
                LOCAL => set("providers.local.base_url", format!("{url}/v1")),
                ANTHROPIC => set("providers.anthropic.base_url", format!("{url}/v1")),
                _ => {}
            }
        }
        set("providers.anthropic.credential_file", key.to_string());
        for (name, value) in self.cli.iter().flatten() {
            set(name, value.clone());
        }
        if self.cli.is_some() {
            let credential = format!("{{ name = \"demo\", kind = \"api_key\", file = \"{key}\" }}");
            set("claude.credentials", format!("[{credential}]"));
        }
        Ok(flags)
    }
}

/// Returns true if a model has a server; the simulation has none.
pub(super) fn has_server(model: &ModelScript) -> bool {
    model.provider != SIM
}
