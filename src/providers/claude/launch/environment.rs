//! Environment variables of the CLI. It gets these and no others.

use std::ffi::OsString;

use super::CallFolder;
use crate::providers::{
    Options, Think,
    claude::{Config, credential::CredentialChannel},
};

/// Addresses of this machine, on which the worker offers the tools of its turns.
const THIS_MACHINE: &str = "127.0.0.1,localhost,::1";

pub(in crate::providers::claude) fn variables(
    config: &Config,
    credential: CredentialChannel<'_>,
    passed: &[(OsString, OsString)],
    ground: &CallFolder,
    options: &Options,
) -> Vec<(OsString, OsString)> {
    let text = |name: &str, value: &str| (name.into(), value.into());
    let number = |name: &str, value: u64| (name.into(), value.to_string().into());
    let mut variables: Vec<(OsString, OsString)> = passed.to_vec();
    variables.extend(no_proxy(passed));
    // Later values win, so these come after the passed ones.
    variables.extend([
        text("PATH", &config.path),
        // Times in the model's context must not depend on the host.
        text("TZ", "UTC"),
        text("LANG", "C.UTF-8"),
        ("HOME".into(), ground.config().into()),
        ("CLAUDE_CONFIG_DIR".into(), ground.config().into()),
        ("TMPDIR".into(), ground.temporary().into()),
        text("DISABLE_TELEMETRY", "1"),
        text("DISABLE_ERROR_REPORTING", "1"),
        text("DISABLE_AUTOUPDATER", "1"),
        text("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Without these a prompt could name files, and sessions of one project would share a memory.
        text("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        text("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
        text("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // A summary of the CLI is unchecked and would replace the history. The service makes its own before the window is full.
        text("DISABLE_AUTO_COMPACT", "1"),
        text("DISABLE_COMPACT", "1"),
        number("CLAUDE_CODE_MAX_RETRIES", config.max_retries.into()),
        number("API_TIMEOUT_MS", config.api_timeout_secs.saturating_mul(1000)),
        // Otherwise a late server would be left out of the turn silently.
        text("MCP_CONNECTION_NONBLOCKING", "0"),
        number("MCP_CONNECT_TIMEOUT_MS", config.mcp_timeout_secs.saturating_mul(1000)),
    ]);
    if !config.base_url.is_empty() {
        variables.push(text("ANTHROPIC_BASE_URL", &config.base_url));
    }
    if options.think == Some(Think::Off) {
        variables.push(text("MAX_THINKING_TOKENS", "0"));
    }
    if let CredentialChannel::Variable { variable, secret } = credential {
        variables.push(text(variable, secret));
    }
    variables
}

/// Excludes this machine from proxies. A turn's tools are on this machine, and no proxy may see their token. Programs read both spellings,
/// and each spelling keeps its other hosts.
fn no_proxy(passed: &[(OsString, OsString)]) -> [(OsString, OsString); 2] {
    ["NO_PROXY", "no_proxy"].map(|name| {
        let said = passed.iter().rev().find(|(passed, _)| passed == name);
        let said = said.filter(|(_, hosts)| !hosts.is_empty());
        let mut hosts = said.map(|(_, hosts)| hosts.clone()).unwrap_or_default();
        if !hosts.is_empty() {
            hosts.push(",");
        }
        hosts.push(THIS_MACHINE);
        (name.into(), hosts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_bypass_the_proxy() {
        let here = "127.0.0.1,localhost,::1";
        let told = |passed: &[(&str, &str)]| {
            let passed: Vec<(OsString, OsString)> =
                passed.iter().map(|(name, value)| (name.into(), value.into())).collect();
            no_proxy(&passed).map(|(_, hosts)| hosts.into_string().unwrap())
        };
        assert_eq!(told(&[("HTTPS_PROXY", "http://proxy:3128")]), [here, here]);
        let passed = [("NO_PROXY", "git.example"), ("no_proxy", "")];
        assert_eq!(told(&passed), [format!("git.example,{here}").as_str(), here]);
    }
}
