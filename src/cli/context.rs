//! The surroundings of a command: environment, flags, output.

use std::time::Duration;

use anyhow::anyhow;
use chrono::{DateTime, Utc};

use super::{
    exit::{Exit, Failure},
    output::Output,
    target::{RemoteFlags, Target},
};
use crate::{
    config::Config,
    domain::{
        agents::{self, Catalogue},
        audit::Actor,
    },
    settings::{Environment, Flags},
};

/// The environment, flags and output of a command.
pub(super) struct Context {
    pub(super) environment: Environment,
    pub(super) flags: Flags,
    pub(super) output: Output,
    pub(super) remote: RemoteFlags,
    /// The server that the command calls. `None`: the command opens the database itself.
    pub(super) target: Option<Target>,
    pub(super) idempotency_key: Option<String>,
    /// Interval of `--watch`.
    pub(super) watch: Option<Duration>,
    /// The command shows agents, so it warns of files with problems. Others only refuse a broken agent that they are given.
    pub(super) shows_agents: bool,
}

impl Context {
    /// Refuses a time that counts from now beside an idempotency key: the same command would mean another time when it is repeated.
    pub(super) fn refuse_relative(
        &self,
        flag: &str,
        absolute_flag: &str,
        at: DateTime<Utc>,
    ) -> Result<(), Failure> {
        if self.idempotency_key.is_none() {
            return Ok(());
        }
        let words = format!(
            "{flag} is relative to now, so a repeated command with the same --idempotency-key would mean another time; give the absolute time: {absolute_flag} {}",
            at.format("%FT%TZ")
        );
        Err(Failure::new(Exit::Usage, anyhow!(words)))
    }

    pub(super) fn load(&self) -> Result<Config, Failure> {
        Ok(Config::load(&self.environment, &self.flags)?)
    }

    /// Says that a command has read the files of this machine, if other commands call a server.
    pub(super) fn note_local_files(&self) -> String {
        let server = self.remote.target(&self.environment).ok().flatten();
        let note = |server: Target| {
            format!(
                "\nThese files are of this machine, not of the server {}: `dalsegno agent files` lists its files and their problems.",
                server.url
            )
        };
        server.map(note).unwrap_or_default()
    }

    /// Loads the usable agents, and prints a warning that names the broken ones.
    pub(super) fn agents(&self, config: &agents::Config) -> Result<Catalogue, Failure> {
        let catalogue = Catalogue::load(config)?;
        Self::warn_broken_agents(&catalogue, self.output);
        Ok(catalogue)
    }

    /// Prints a warning that names the broken agents and the first problem.
    pub(super) fn warn_broken_agents(catalogue: &Catalogue, output: Output) {
        let problems = catalogue.problems();
        if let Some(first) = problems.0.first() {
            let broken: Vec<&str> = catalogue.broken_agents().collect();
            let refused = match broken.is_empty() {
                true => String::new(),
                false => format!("; refused until they are fixed: {}", broken.join(", ")),
            };
            let (first, n_problems) = (first.in_one_line(), problems.0.len());
            output.print_note(&format!(
                "warning: the files of agents, skills and nodes have problems ({n_problems}), the first is {first}{refused}; \
                 `dalsegno agent check` lists them"
            ));
        }
    }

    /// Loads the agents for their names, without a warning.
    pub(super) fn catalogue(&self) -> Catalogue {
        let config = self.load().ok();
        config.and_then(|config| Catalogue::load(&config.agents).ok()).unwrap_or_default()
    }

    /// Returns the user of this command, for the audit log.
    pub(super) fn actor(&self) -> Actor {
        let user = ["USER", "LOGNAME"].iter().find_map(|name| self.environment.get(name));
        let user = user.map_or_else(own_user, str::to_owned);
        Actor::cli(&user, &rustix::system::uname().nodename().to_string_lossy())
    }
}

/// Returns the name of the own user, or the number of a user without a name.
fn own_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    find_user(&users, uid).map_or_else(|| uid.to_string(), str::to_owned)
}

/// Finds the name of a user in the text of `/etc/passwd`.
fn find_user(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse::<u32>().ok() == Some(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_its_number() {
        let users =
            "# comment\nroot:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(find_user(users, 0), Some("root"));
        assert_eq!(find_user(users, 1000), Some("ann"));
        assert_eq!(find_user(users, 7), None);
    }
}
