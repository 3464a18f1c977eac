//! Configuration of the demo and its workers. The user's configuration has almost no part in it.

use std::path::Path;

use anyhow::Context as _;

use super::{ending::DemoEnd, folder::Folder, script};
use crate::{
    cli::Failure,
    config::{self, Config},
    db::embedded,
    domain::text::quote_for_shell,
    settings::{Environment, Flags, Problems},
};

/// Settings that differ from the defaults:
/// - Short leases shorten the wait for the rescue.
/// - A small window makes the series overflow it.
/// - A slow answer can be interrupted.
const SETTINGS: [(&str, &str); 19] = [
    ("agents.provider", "sim"),
    ("agents.model", "sim-1"),
    ("database.max_connections", "10"),
    ("log.filter", "info,sqlx=error"),
    ("log.format", "json"),
    ("queue.cancel_grace_secs", "1"),
    ("queue.heartbeat_secs", "1"),
    ("queue.lease_margin_secs", "1"),
    ("queue.lease_secs", "3"),
    ("queue.poll_busy_ms", "100"),
    ("queue.poll_idle_ms", "500"),
    // Keeps the nightly cleanup from deleting the expired session before the report reads it.
    ("scheduler.enabled", "false"),
    ("shutdown.drain_timeout_secs", "0"),
    ("shutdown.stop_timeout_secs", "5"),
    ("sim.chunk_delay_ms", "20"),
    ("sim.directives", "true"),
    ("sim.latency_ms", "150"),
    ("sim.window_tokens", "11200"),
    // One slot less than there are writers, so that two workers share them.
    ("worker.turns_slots", "2"),
];

/// Settings that a service on a kept demo shares with the demo.
const SERVED: [&str; 4] =
    ["agents.provider", "agents.model", "sim.directives", "sim.window_tokens"];

/// The configuration file of a kept demo, in its folder.
const CONFIG_FILE: &str = "dalsegno.toml";
const CONFIG_HEAD: &str = "# The database of a demo, and the simulation that answers in it. Each `dalsegno demo --keep` and `--open` writes this file again.\n";

/// Settings of a demo that a person reads along.
const READABLE: [(&str, &str); 2] = [("sim.chunk_delay_ms", "150"), ("sim.latency_ms", "2000")];

/// The configuration of the demo, and the same settings as flags of its workers.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) flags: Vec<(String, String)>,
    /// Lease time of the default configuration.
    pub(super) usual_lease_secs: u32,
    pub(super) ending: DemoEnd,
}

impl Settings {
    /// Builds the settings. Of the user's configuration it takes only where the binaries of Postgres are, which
    /// account runs them, and where a console is served.
    pub(super) fn in_folder(
        folder: &Folder,
        user: Config,
        ending: DemoEnd,
    ) -> Result<Self, Failure> {
        let is_open = ending == DemoEnd::Open;
        let path = folder.path();
        let readable = READABLE.iter().filter(|_| is_open);
        let is_replaced =
            |(key, _): &&(&str, &str)| is_open && READABLE.iter().any(|(slow, _)| slow == key);
        let settings = SETTINGS.iter().filter(|setting| !is_replaced(setting)).chain(readable);
        let flags = settings.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        script::write_agents(&path.join("agents"))
            .context("cannot write the agent files of the demo")
            .map_err(Failure::failed)?;
        script::write_skills(&path.join("skills"))
            .context("cannot write the skills of the demo")
            .map_err(Failure::failed)?;
        script::write_flows(&path.join("flows"))
            .context("cannot write the flow template of the demo")
            .map_err(Failure::failed)?;
        if folder.is_kept() {
            write_config(path)
                .context("cannot write the configuration file of the demo")
                .map_err(Failure::failed)?;
        }
        Self::with_flags(folder, user, ending, flags)
    }

    /// Adds the folders of the demo to its flags. The caller has written the agents' files and the folder of skills.
    pub(super) fn with_flags(
        folder: &Folder,
        user: Config,
        ending: DemoEnd,
        mut flags: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        let (is_kept, is_open) = (folder.is_kept(), ending == DemoEnd::Open);
        let folder = folder.path();
        // Only the default folders may be missing.
        for name in ["nodes", "flows"] {
            std::fs::create_dir_all(folder.join(name))
                .with_context(|| format!("cannot create the folder of {name} of the demo"))
                .map_err(Failure::failed)?;
        }
        flags.extend(folder_flags(folder));
        let nothing = Environment::default();
        let mut config = Config::load(&nothing, &Flags { file: None, set: flags.clone() })?;
        config.database.embedded = embedded::Config {
            data_dir: folder.to_owned(),
            // Inside a temporary folder, so that it is removed with it.
            fallback_dir: match is_kept {
                true => user.database.embedded.fallback_dir.clone(),
                false => folder.join("fallback"),
            },
            purpose: match is_kept {
                true => embedded::Purpose::Keep,
                false => embedded::Purpose::Throwaway,
            },
            ..user.database.embedded
        };
        if is_open {
            config.http.listen = user.http.listen;
        }
        let usual_lease_secs = Config::load(&nothing, &Flags::default())?.queue.lease_secs;
        Ok(Self { config, flags, usual_lease_secs, ending })
    }
}

/// Returns the settings that name the folders of a demo.
fn folder_flags(folder: &Path) -> [(String, String); 5] {
    let path = |key: &str, name: &str| (key.to_owned(), folder.join(name).display().to_string());
    [
        ("service.data_dir".to_owned(), folder.display().to_string()),
        path("agents.folder", "agents"),
        path("agents.skills_folder", "skills"),
        path("agents.nodes_folder", "nodes"),
        path("flows.folder", "flows"),
    ]
}

/// Returns the settings with which commands and a service work on a kept demo.
fn kept_settings(folder: &Path) -> Vec<(String, String)> {
    let database = ("database.url".to_owned(), String::new());
    let served = SETTINGS.iter().filter(|(key, _)| SERVED.contains(key));
    let served = served.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut settings: Vec<_> =
        std::iter::once(database).chain(folder_flags(folder)).chain(served).collect();
    // The keys of a section stand together.
    settings.sort_by_key(|(key, _)| key.split('.').next().map(str::to_owned));
    settings
}

/// Writes the configuration file of a kept demo.
fn write_config(folder: &Path) -> std::io::Result<()> {
    let mut text = CONFIG_HEAD.to_owned();
    let mut section = String::new();
    for (key, value) in kept_settings(folder) {
        let (of, name) = key.split_once('.').unwrap_or(("", &key));
        if section != of {
            text.push_str(&format!("\n[{of}]\n"));
            of.clone_into(&mut section);
        }
        let is_plain = value.parse::<bool>().is_ok() || value.parse::<u32>().is_ok();
        // A string of JSON is one of TOML.
        let value = if is_plain { value } else { serde_json::Value::from(value).to_string() };
        text.push_str(&format!("{name} = {value}\n"));
    }
    std::fs::write(folder.join(CONFIG_FILE), text)
}

/// Returns the beginning of the commands for a kept demo. Settings of the file that variables of the environment would replace are flags.
pub(super) fn kept_command(folder: &Path, environment: &Environment) -> String {
    let file = folder.join(CONFIG_FILE);
    let shown = file.display().to_string();
    let flags = Flags { file: Some(file), set: Vec::new() };
    // Values that are not valid matter as little as those that are: a flag replaces them.
    let layers = config::layers(environment, &flags, &mut Problems::default());
    let is_of_file = |key: &str| layers.origin(key) == shown;
    let mut command = format!("dalsegno --config {}", quote_for_shell(&shown));
    for (key, value) in kept_settings(folder).iter().filter(|(key, _)| !is_of_file(key)) {
        let value = if value.is_empty() { String::new() } else { quote_for_shell(value) };
        command.push_str(&format!(" --set {key}={value}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{agents::Catalogue, flows::Templates};

    #[test]
    fn a_kept_demo_is_served_with_its_own_folders_and_its_simulation() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| place.path().join(name);
        std::fs::create_dir(folder("nodes")).unwrap();
        script::write_agents(&folder("agents")).unwrap();
        script::write_skills(&folder("skills")).unwrap();
        script::write_flows(&folder("flows")).unwrap();
        write_config(place.path()).unwrap();
        let file = Some(folder(CONFIG_FILE));
        let flags = Flags { file, set: Vec::new() };
        let config = Config::load(&Environment::default(), &flags).unwrap();
        assert!(config.database.url.is_none());
        assert_eq!(config.service.data_dir, place.path());
        assert_eq!(config.agents.folder, folder("agents"));
        assert_eq!(config.agents.skills_folder, folder("skills"));
        assert_eq!(config.agents.nodes_folder, folder("nodes"));
        let catalogue = Catalogue::load(&config.agents).unwrap();
        let templates = Templates::load(&config.flows, &catalogue).unwrap();
        let names: Vec<&str> = templates.all().map(|template| template.name.as_str()).collect();
        assert_eq!(names, ["reviewed-text"], "{}", templates.problems());
        assert!(config.agents.provider.as_str() == "sim" && config.sim.directives);
        assert_eq!(config.sim.window_tokens, 11_200);
    }

    #[test]
    fn the_commands_for_a_kept_demo_name_its_file_and_replace_only_variables() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("my demo");
        for name in ["agents", "skills", "nodes", "flows"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        write_config(&folder).unwrap();
        let shown = folder.display();
        let command = kept_command(&folder, &Environment::default());
        assert_eq!(command, format!("dalsegno --config '{shown}/dalsegno.toml'"));
        let variables = [
            ("DATABASE_URL", "postgres://tester@127.0.0.1:1/users_own"),
            ("DALSEGNO_AGENTS__FOLDER", "/srv/agents"),
            ("DALSEGNO_HTTP__LISTEN", "127.0.0.1:1"),
        ];
        let command = kept_command(&folder, &Environment::from(variables));
        let set = format!(" --set agents.folder='{shown}/agents' --set database.url=");
        assert_eq!(command, format!("dalsegno --config '{shown}/dalsegno.toml'{set}"));
    }
}
