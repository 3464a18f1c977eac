//! Command line of the CLI. Every flag is one argument, `--flag=value`, so that a value is never taken for a flag.

use std::{ffi::OsString, path::Path};

use uuid::Uuid;

use super::CallFiles;
use crate::providers::{Grants, Options, PermissionMode, Think};

/// Start of the session: new or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers::claude) enum Start {
    New(Uuid),
    /// Continues after the message `at`. The CLI cuts off what follows it in the file.
    Resume {
        session: Uuid,
        at: Uuid,
    },
}

/// Tools of the CLI's bare mode. Measured: it ignores all others.
const BARE_TOOLS: [&str; 3] = ["Bash", "Edit", "Read"];

/// Returns true if the bare mode, which is faster, has all granted tools.
pub(in crate::providers::claude) fn fits_bare(grants: &Grants) -> bool {
    grants.built_in.iter().all(|tool| BARE_TOOLS.contains(&tool.as_str()))
}

/// Returns true if the model can run programs or read files: these could find a credential in the environment.
pub(in crate::providers::claude) fn can_run_programs(grants: &Grants) -> bool {
    let mut servers = grants.mcp_servers.values();
    !grants.built_in.is_empty() || servers.any(|server| server.get("command").is_some())
}

pub(in crate::providers::claude) fn arguments(
    start: Start,
    model: &str,
    options: &Options,
    grants: &Grants,
    files: &CallFiles,
    is_bare: bool,
    is_kept: bool,
) -> Vec<OsString> {
    let mut flags = Flags(vec!["-p".into(), "--verbose".into()]);
    flags.text("input-format", "stream-json");
    flags.text("output-format", "stream-json");
    flags.switch("include-partial-messages", true);
    flags.switch("bare", is_bare);
    flags.switch("strict-mcp-config", true);
    flags.switch("disable-slash-commands", true);
    flags.switch("no-session-persistence", !is_kept);
    match start {
        Start::New(session) => flags.text("session-id", &session.to_string()),
        Start::Resume { session, at } => {
            flags.text("resume", &session.to_string());
            flags.text("resume-session-at", &at.to_string());
        }
    }
    flags.text("model", model);
    flags.path("system-prompt-file", &files.system_prompt);
    flags.path("mcp-config", &files.mcp_config);
    // Without settings the CLI leaves old transcripts alone: our own retention deletes them. Settings would cost 50 ms.
    flags.text("setting-sources", "");
    flags.text("tools", &grants.built_in.join(","));
    flags.text("allowedTools", &grants.allowed.join(","));
    flags.text("disallowedTools", &grants.denied.join(","));
    flags.text("permission-mode", permission_mode(grants.permission_mode));
    for folder in &grants.folders {
        flags.path("add-dir", folder);
    }
    if let Some(effort) = options.think.and_then(effort) {
        flags.text("effort", effort);
    }
    if let Some(n) = grants.max_rounds.filter(|n| *n > 0) {
        flags.text("max-turns", &n.to_string());
    }
    if let Some(micros) = grants.max_cost_micros.filter(|micros| *micros > 0) {
        let (dollars, rest) = (micros / 1_000_000, micros % 1_000_000);
        flags.text("max-budget-usd", &format!("{dollars}.{rest:06}"));
    }
    if let Some(schema) = &options.format {
        flags.text("json-schema", &schema.to_string());
    }
    flags.0
}

struct Flags(Vec<OsString>);

impl Flags {
    fn switch(&mut self, name: &str, is_on: bool) {
        if is_on {
            self.0.push(format!("--{name}").into());
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        // The kernel accepts no NUL in an argument.
        self.0.push(format!("--{name}={}", value.replace('\0', "")).into());
    }

    fn path(&mut self, name: &str, value: &Path) {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(value);
        self.0.push(flag);
    }
}

fn permission_mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::DontAsk => "dontAsk",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Plan => "plan",
        PermissionMode::BypassPermissions => "bypassPermissions",
    }
}

/// Returns the effort flag. A variable turns thinking on or off.
fn effort(think: Think) -> Option<&'static str> {
    match think {
        Think::Off | Think::On => None,
        Think::Low => Some("low"),
        Think::Medium => Some("medium"),
        Think::High => Some("high"),
    }
}
