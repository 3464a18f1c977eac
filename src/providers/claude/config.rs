//! The section `[claude]`.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{credential::CredentialConfig, launch::Limits};
use crate::providers::{Capabilities, Prestart, Problem};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The CLI: a path, or a name to look for in `path`.
    pub program: PathBuf,
    /// `PATH` of the CLI and of the programs that it starts.
    pub path: String,
    /// Base URL of the API; empty: the CLI's own default.
    pub base_url: String,
    /// Credentials, in order of preference.
    pub credentials: Vec<CredentialConfig>,
    /// Variables of the service that the CLI may see: proxies, certificates.
    pub pass_variables: Vec<String>,
    /// Window in tokens of models that have not reported theirs.
    pub window_tokens: u32,
    /// Percentage of the window at which a conversation continues in a new session.
    pub rollover_percent: u32,
    pub witness: HistoryCheck,
    /// Lifetime of the API's prompt cache after its last use.
    pub prompt_cache_secs: u64,
    /// Retries by the CLI itself, within one attempt of the service.
    pub max_retries: u32,
    /// Timeout for one request of the CLI to the API.
    pub api_timeout_secs: u64,
    /// Timeout for a tool server to become ready.
    pub mcp_timeout_secs: u64,
    pub first_line_timeout_secs: u64,
    /// Timeout between two lines. Tools are silent while they run.
    pub idle_timeout_secs: u64,
    pub total_timeout_secs: u64,
    /// Timeout for the process to exit after its turn has ended.
    pub exit_timeout_secs: u64,
    /// Time for each step of a cancellation, in order: an interrupt request, the end of the input, SIGTERM. SIGKILL follows.
    pub interrupt_ms: u64,
    pub end_of_input_ms: u64,
    pub terminate_ms: u64,
    pub line_max_bytes: usize,
    pub output_max_bytes: usize,
    /// Maximum bytes that are stored of files beside a session's transcript: those of subagents, and long results of tools.
    pub side_files_max_bytes: u64,
    /// Maximum bytes that are kept of the CLI's standard error, from its end.
    pub stderr_max_bytes: usize,
    /// Size of the largest file that the CLI and the programs that it starts may write; 0 disables the limit.
    pub file_max_bytes: u64,
    /// Maximum number of processes that wait for the next turn of their session, for agents that ask for it; 0 starts none ahead.
    pub ahead_max: usize,
    pub ahead_idle_secs: u64,
    /// Memory of each process, or of all together in a control group; 0 disables the limit.
    pub memory_max_bytes: u64,
    /// Maximum number of processes and threads; 0 disables the limit.
    pub processes_max: u64,
    /// Folder of cgroup v2 in which groups may be made. If empty, resource limits are used instead.
    pub cgroup: PathBuf,
    /// Pause after a rate limit that does not say when it ends.
    pub rate_limit_pause_secs: u64,
}

/// Reaction to a model that did not see its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryCheck {
    Flag,
    /// Rebuild the session from the messages once. If the model does not see these either, flag the turn.
    Rebuild,
}

/// Measured: with 700 MB the CLI ends at its start, with 800 MB it runs.
const MEMORY_MIN_BYTES: u64 = 1 << 30;
/// The CLI has some twenty threads itself, and needs a few for the programs that it starts.
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
            // No line repeats the system prompt, but an answer of a megabyte comes twice.
            ("line_max_bytes", self.line_max_bytes as u64, 1 << 20),
            ("output_max_bytes", self.output_max_bytes as u64, self.line_max_bytes as u64),
            ("stderr_max_bytes", self.stderr_max_bytes as u64, 1024),
        ];
        for (key, value, least) in at_least {
            problems.extend(Problem::below(key, value, least));
        }
        if self.max_retries > 15 {
            let message = format!("is {}, but the CLI makes at most 15", self.max_retries);
            problems.push(Problem::new("max_retries", message, "2"));
        }
        if !(10..=90).contains(&self.rollover_percent) {
            let message = format!("is {}, but must be from 10 to 90", self.rollover_percent);
            problems.push(Problem::new("rollover_percent", message, "60"));
        }
        if (1..MEMORY_MIN_BYTES).contains(&self.memory_max_bytes) {
            let message = format!("is {}, but the CLI alone needs more", self.memory_max_bytes);
            problems.push(Problem::new(
                "memory_max_bytes",
                message,
                "8589934592, or 0 for no limit",
            ));
        }
        if (1..PROCESSES_MIN).contains(&self.processes_max) {
            let message = format!("is {}, but the CLI alone has more threads", self.processes_max);
            problems.push(Problem::new("processes_max", message, "512, or 0 for no limit"));
        }
        if self.program.as_os_str().is_empty() {
            problems.push(Problem::new("program", "is empty", "claude"));
        }
        problems.extend(CredentialConfig::check_all(&self.credentials));
        problems
    }

    /// Returns the abilities of the CLI with these settings.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds_session: true,
            is_simulation: false,
            takes_sampling: false,
            takes_schema: true,
            takes_thinking: true,
            works_in_folder: true,
            prestart: match self.ahead_max {
                0 => Prestart::Disabled { setting: "claude.ahead_max" },
                _ => Prestart::Enabled,
            },
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            file_max_bytes: self.file_max_bytes,
            memory_max_bytes: self.memory_max_bytes,
            processes_max: self.processes_max,
            cgroup: self.cgroup.clone(),
        }
    }

    /// Returns true if the CLI refuses bypassPermissions: as root, outside of a declared sandbox. `variable` looks up an environment
    /// variable.
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
            witness: HistoryCheck::Rebuild,
            prompt_cache_secs: 300,
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
    fn the_defaults_are_valid_and_every_problem_is_reported() {
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
