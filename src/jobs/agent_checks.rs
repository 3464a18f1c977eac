//! Checks of agents that need more than their files: the tools of the service, weights of texts, properties of providers.

use crate::{
    context::{Budget, Calibration, Weight},
    domain::agents::{self, Agent, Catalogue, PermissionMode, SessionMode as Mode},
    providers::claude,
    tools,
};

/// Step to which a proposed window is rounded up, in tokens.
const WINDOW_STEP: u64 = 1024;

/// Lists keys of valid files with which an agent cannot run: tools that do not exist, and windows that its system prompt fills.
pub fn agent_problems(catalogue: &Catalogue, config: &agents::Config) -> Vec<agents::Problem> {
    let mut problems = Vec::new();
    for agent in catalogue.agents() {
        let file = config.folder.join(format!("{}.md", agent.name)).display().to_string();
        let mut report = |key: &str, message: String, fix: String| {
            let (file, key) = (file.clone(), Some(key.to_owned()));
            problems.push(agents::Problem { file, line: None, key, message, fix });
        };
        let grants = &agent.grants;
        for (key, rules) in
            [("tools", &grants.tools), ("disallowedTools", &grants.disallowed_tools)]
        {
            for (rule, nearest) in tools::unknown_tools(rules) {
                let fix = match nearest {
                    Some(name) => format!("mcp__{}__{name} (the closest match)", tools::SERVER),
                    None => format!("mcp__{} for all tools of the service", tools::SERVER),
                };
                report(key, format!("`{rule}` names an unknown tool of the service"), fix);
            }
        }
        if let Some((message, least_tokens)) = narrow_window(catalogue, agent) {
            report("window_tokens", message, format!("window_tokens: {least_tokens}"));
        }
    }
    problems
}

/// Returns the reason why the system prompt and the reserve do not fit into the window of the file, and a window that is large enough.
fn narrow_window(catalogue: &Catalogue, agent: &Agent) -> Option<(String, u64)> {
    let window_tokens = u64::try_from(agent.window_tokens?).ok()?;
    let reserve = agent.reserve_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let reserve_tokens = reserve.unwrap_or_else(|| Budget::default_reserve(window_tokens));
    let skills = catalogue.skills_of(agent);
    let skills: Weight = skills.iter().map(|skill| Weight::of_text(&skill.text)).sum();
    // The first turn estimates in the same way. Later parts of the system prompt, such as the brief, come on top.
    let system_tokens = Calibration::cold().tokens(Weight::of_text(&agent.prompt) + skills);
    let error = Budget::new(window_tokens, reserve_tokens, system_tokens).err()?;
    let least = Budget::of_narrow(0, reserve_tokens, system_tokens).window_tokens();
    Some((format!("is too small: {error}"), least.next_multiple_of(WINDOW_STEP)))
}

/// Lists the reasons why keys of an agent's file have no effect on its provider.
pub fn ignored_key_reasons(
    agent: &Agent,
    own: agents::Provider,
    claude: &claude::Config,
) -> Vec<&'static str> {
    let fallback = agent.fallback.as_ref().map(|fallback| fallback.provider);
    let is_on_claude = [Some(own), fallback].contains(&Some(agents::Provider::Claude));
    let mut reasons = Vec::from_iter(ignored_warm_reason(agent, is_on_claude, claude));
    if agent.grants.workspace && !is_on_claude {
        reasons.push("`workspace: true` has no effect: only agents on Claude work in a folder");
    }
    if agent.grants.permission_mode != PermissionMode::DontAsk && !is_on_claude {
        reasons.push("`permissionMode` has no effect: only the Claude Code CLI uses it");
    }
    reasons
}

/// Returns the reason why `warm: true` in an agent's file has no effect, if it is set and has none.
fn ignored_warm_reason(
    agent: &Agent,
    is_on_claude: bool,
    claude: &claude::Config,
) -> Option<&'static str> {
    if !agent.warm {
        None
    } else if !is_on_claude {
        Some("`warm: true` has no effect: only the Claude Code CLI can be prestarted")
    } else if tools::are_granted(&agent.grants) {
        Some(
            "`warm: true` has no effect together with mcp__dalsegno: each turn gives the CLI a new token, so it cannot be prestarted; remove one of the two",
        )
    } else if agent.session == Mode::None {
        Some("`warm: true` has no effect with `session: none`: the session has no further turn")
    } else if claude.ahead_max == 0 {
        Some("`warm: true` has no effect while claude.ahead_max is 0")
    } else {
        None
    }
}
