//! The section `[claude]`.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{credential::CredentialConfig, launch::Limits};
use crate::providers::Problem;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The CLI: a path, or a name to look for in `path`.
    pub program: PathBuf,
    /// `PATH` of the CLI and of what it starts.
    pub path: String,
    /// Where calls go; empty: where the CLI sends them by itself.
    pub base_url: String,
    /// Logins, in order of preference.
    pub credentials: Vec<CredentialConfig>,
    /// Variables of the service that the CLI may see: proxies, certificates.
    pub pass_variables: Vec<String>,
    /// Of models that have not said theirs.
    pub window_tokens: u32,
    /// Of the window: from there on a conversation goes on in a new session.
    pub rollover_percent: u32,
    pub witness: Witness,
    /// Retries of the CLI itself, within one attempt of ours.
    pub max_retries: u32,
    /// For one request of the CLI to the API.
    pub api_timeout_secs: u64,
    /// For a tool server to be ready.
    pub mcp_timeout_secs: u64,
    pub first_line_timeout_secs: u64,
    /// Between two lines. Tools are silent while they run.
    pub idle_timeout_secs: u64,
    pub total_timeout_secs: u64,
    /// For the process to end once its turn has.
    pub exit_timeout_secs: u64,
    /// Steps of a cancellation, each before the next: a request to stop, the end of the input, SIGTERM; then SIGKILL.
    pub interrupt_ms: u64,
    pub end_of_input_ms: u64,
    pub terminate_ms: u64,
    pub line_max_bytes: usize,
    pub output_max_bytes: usize,
    /// What is stored of files beside a session's transcript: those of subagents, and long results of tools.
    pub side_files_max_bytes: u64,
    /// What is kept of the CLI's standard error: its end.
    pub stderr_max_bytes: usize,
    /// The largest file that the CLI and what it starts may write; 0: any.
    pub file_max_bytes: u64,
    /// Processes that may wait for the next turn of their session, for agents that ask for it.
    pub ahead_max: usize,
    pub ahead_idle_secs: u64,
    /// What each of them may have of memory, or all together in a control group; 0: any.
    pub memory_max_bytes: u64,
    /// How many processes and threads there may be; 0: any.
    pub processes_max: u64,
    /// A folder of cgroup v2 in which groups may be made. Empty: resource limits have to do.
    pub cgroup: PathBuf,
    /// A rate limit without a time is waited for as long.
    pub rate_limit_pause_secs: u64,
}

/// What to do about a model that did not see its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    Flag,
    /// Once, and flag it.
    Rebuild,
}

/// Measured: with 700 MB the CLI ends at its start, with 800 MB it runs.
const MEMORY_MIN_BYTES: u64 = 1 << 30;
/// Some twenty threads of its own, and a few for what it starts.
const PROCESSES_MIN: u64 = 64;

impl Config {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let at_least = [
            ("window_tokens", self.window_tokens.into(), 8192),
            ("api_timeout_secs", self.api_timeout_secs, 1),
            ("first_line_timeout_secs", self.first_line_timeout_secs, 1),
            ("idle_timeout_secs", self.idle_timeout_secs, 1),
            ("total_timeout_secs", self.total_timeout_secs, 1),
            ("ahead_idle_secs", self.ahead_idle_secs, 1),
            ("exit_timeout_secs", self.exit_timeout_secs, 1),
            // A system prompt comes back in no line, but an answer of a megabyte comes twice.
            ("line_max_bytes", self.line_max_bytes as u64, 1 << 20),
            ("output_max_bytes", self.output_max_bytes as u64, self.line_max_bytes as u64),
            ("stderr_max_bytes", self.stderr_max_bytes as u64, 1024),
        ];
        for (key, value, least) in at_least {
            problems.extend(Problem::below(key, value, least));
        }
        if self.max_retries > 15 {
            let message = format!("is {}, but the CLI makes 15 at most", self.max_retries);
            problems.push(Problem::new("max_retries", message, "2"));
        }
        if !(10..=90).contains(&self.rollover_percent) {
            let message = format!("is {}, but has to be from 10 to 90", self.rollover_percent);
            problems.push(Problem::new("rollover_percent", message, "60"));
        }
        if (1..MEMORY_MIN_BYTES).contains(&self.memory_max_bytes) {
            let message =
                format!("is {}, but the CLI alone needs that much", self.memory_max_bytes);
            problems.push(Problem::new("memory_max_bytes", message, "8589934592, or 0 for any"));
        }
        if (1..PROCESSES_MIN).contains(&self.processes_max) {
            let message =
                format!("is {}, but the CLI alone has that many threads", self.processes_max);
            problems.push(Problem::new("processes_max", message, "512, or 0 for any"));
        }
        if self.program.as_os_str().is_empty() {
            problems.push(Problem::new("program", "is empty", "claude"));
        }
        problems.extend(CredentialConfig::check_all(&self.credentials));
        problems
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            file_max_bytes: self.file_max_bytes,
            memory_max_bytes: self.memory_max_bytes,
            processes_max: self.processes_max,
            cgroup: self.cgroup.clone(),
        }
    }

    /// Whether the CLI will not let its user allow everything. `variable` looks one up in the environment.
    pub fn refuses_bypass(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let says_sandbox = |name: &String| {
            let value = variable(name).unwrap_or_default();
            match name.as_str() {
                "IS_SANDBOX" => value == "1",
                "CLAUDE_CODE_BUBBLEWRAP" => !value.is_empty(),
                _ => false,
            }
        };
        rustix::process::geteuid().is_root() && !self.pass_variables.iter().any(says_sandbox)
    }

    pub(super) fn first_line_timeout(&self) -> Duration {
        Duration::from_secs(self.first_line_timeout_secs)
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_secs)
    }

    pub(super) fn total_timeout(&self) -> Duration {
        Duration::from_secs(self.total_timeout_secs)
    }

    pub(super) fn ahead_idle(&self) -> Duration {
        Duration::from_secs(self.ahead_idle_secs)
    }

    pub(super) fn exit_timeout(&self) -> Duration {
        Duration::from_secs(self.exit_timeout_secs)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            program: "claude".into(),
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            base_url: String::new(),
            credentials: Vec::new(),
            pass_variables: Vec::new(),
            window_tokens: 200_000,
            rollover_percent: 60,
            witness: Witness::Rebuild,
            max_retries: 2,
            api_timeout_secs: 600,
            mcp_timeout_secs: 15,
            first_line_timeout_secs: 60,
            idle_timeout_secs: 900,
            total_timeout_secs: 3600,
            exit_timeout_secs: 5,
            interrupt_ms: 300,
            end_of_input_ms: 200,
            terminate_ms: 200,
            line_max_bytes: 32 << 20,
            output_max_bytes: 512 << 20,
            side_files_max_bytes: 64 << 20,
            stderr_max_bytes: 16 << 10,
            file_max_bytes: 4 << 30,
            ahead_max: 4,
            ahead_idle_secs: 1800,
            memory_max_bytes: 8 << 30,
            processes_max: 0,
            cgroup: PathBuf::new(),
            rate_limit_pause_secs: 300,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_fine_and_every_problem_is_reported() {
        assert_eq!(Config::default().check(), []);
        let config = Config {
            program: PathBuf::new(),
            max_retries: 16,
            rollover_percent: 95,
            line_max_bytes: 10,
            idle_timeout_secs: 0,
            memory_max_bytes: 1 << 20,
            processes_max: 5,
            ..Config::default()
        };
        let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
        assert_eq!(
            keys,
            [
                "idle_timeout_secs",
                "line_max_bytes",
                "max_retries",
                "rollover_percent",
                "memory_max_bytes",
                "processes_max",
                "program"
            ]
        );
    }
}
