//! Checks of agents against the properties of their providers.

use crate::{
    domain::agents::{self, Agent, PermissionMode, SessionMode as Mode},
    providers::{Capabilities, CapabilityLookup, Prestart},
    tools,
};

/// Lists the reasons why keys of an agent's file have no effect on any of its providers.
pub fn ignored_key_reasons(
    agent: &Agent,
    config: &agents::Config,
    capabilities: &CapabilityLookup<'_>,
) -> Vec<String> {
    let providers = agent.models(config).map(|(provider, _)| capabilities(provider.as_str()));
    let abilities: Vec<Capabilities> = providers.flatten().collect();
    let works_in_folder = abilities.iter().any(|it| it.works_in_folder);
    let mut reasons = Vec::from_iter(ignored_warm_reason(agent, &abilities));
    if agent.grants.workspace && !works_in_folder {
        let reason = "`workspace: true` has no effect: only agents on Claude work in a folder";
        reasons.push(reason.to_owned());
    }
    if agent.grants.permission_mode != PermissionMode::DontAsk && !works_in_folder {
        let reason = "`permissionMode` has no effect: only the Claude Code CLI uses it";
        reasons.push(reason.to_owned());
    }
    // A file without a provider may be meant for any.
    let names_provider = agent.chain.iter().any(|entry| entry.provider.is_some());
    if names_provider && !abilities.iter().any(|it| it.takes_sampling) {
        reasons.extend(ignored_option_reasons(&agent.options));
    }
    reasons
}

fn ignored_option_reasons(options: &agents::Options) -> impl Iterator<Item = String> {
    [
        ("temperature", options.temperature.is_some()),
        ("top_p", options.top_p.is_some()),
        ("seed", options.seed.is_some()),
    ]
    .into_iter()
    .filter(|(_, is_set)| *is_set)
    .map(|(key, _)| format!("`{key}` has no effect: only Ollama and endpoints use it"))
}

/// Returns the reason why `warm: true` in an agent's file has no effect, if it is set and has none.
fn ignored_warm_reason(agent: &Agent, abilities: &[Capabilities]) -> Option<String> {
    let prestart = abilities.iter().map(|it| it.prestart).find(|it| *it != Prestart::Unsupported);
    let reason = match prestart {
        _ if !agent.warm => return None,
        None => ": only the Claude Code CLI can be prestarted",
        Some(_) if tools::are_granted(&agent.grants) => {
            " together with mcp__dalsegno: each turn gives the CLI a new token, so it cannot be prestarted; remove one of the two"
        }
        Some(_) if agent.session == Mode::None => {
            " with `session: none`: the session has no further turn"
        }
        Some(Prestart::Disabled { setting }) => {
            return Some(format!("`warm: true` has no effect while {setting} is 0"));
        }
        Some(_) => return None,
    };
    Some(format!("`warm: true` has no effect{reason}"))
}
