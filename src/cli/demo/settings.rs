//! Configuration of the demo and its workers. The user's configuration has almost no part in it.

use std::path::Path;

use anyhow::Context as _;

use super::{ending::DemoEnd, folder::Folder, script};
use crate::{
    cli::Failure,
    config::Config,
    db::embedded,
    domain::text::quote_for_shell,
    settings::{Environment, Flags},
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

/// Returns the command that serves the console on a kept demo, whose agents answer as in the demo.
pub(super) fn serve_command(folder: &Path) -> String {
    let served = SETTINGS.iter().filter(|(key, _)| SERVED.contains(key));
    let served = served.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let flags = folder_flags(folder).into_iter().chain(served);
    let flag = |(key, value): (String, String)| format!(" --set {key}={}", quote_for_shell(&value));
    let flags: String = flags.map(flag).collect();
    format!("dalsegno --set database.url={flags} serve")
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
        let command = serve_command(place.path());
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!((words[0], words[words.len() - 1]), ("dalsegno", "serve"));
        let set = words.iter().filter_map(|word| word.split_once('='));
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
        assert_eq!(config.service.data_dir, place.path());
        assert_eq!(config.agents.folder, folder("agents"));
        assert_eq!(config.agents.skills_folder, folder("skills"));
        assert_eq!(config.agents.nodes_folder, folder("nodes"));
        let catalogue = Catalogue::load(&config.agents).unwrap();
        let templates = Templates::load(&config.flows, &catalogue).unwrap();
        let names: Vec<&str> = templates.all().map(|template| template.name.as_str()).collect();
        assert_eq!(names, ["reviewed-text"], "{}", templates.problems());
        assert!(command.contains("--set agents.provider=sim") && config.sim.directives);
        assert_eq!(config.sim.window_tokens, 11_200);
        let spaced = serve_command(Path::new("/srv/my demo"));
        assert!(spaced.contains(" --set agents.folder='/srv/my demo/agents' "), "{spaced}");
    }
}
