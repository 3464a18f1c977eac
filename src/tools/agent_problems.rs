//! Checks of agents that need more than their files: the tools of the service, and the weights of texts.

use std::sync::Arc;

use super::{
    list_offered_to_agent,
    rule_problems::{RuleProblem, rule_problems},
};
use crate::{
    context::{Budget, Calibration, fixed_weight},
    domain::agents::{self, Agent, Catalogue},
    transcript::ToolSpec,
};

/// Step to which a proposed window or budget is rounded up, in tokens.
const WINDOW_STEP: u64 = 1024;
/// Window that is assumed for a file without one: the smallest of models in use, so that no file is refused wrongly.
const SMALL_WINDOW_TOKENS: u64 = 4096;

/// Lists keys with which agents cannot run as their files say: rules of tools without effect, windows without room for a conversation, and
/// budgets that cannot pay for a call.
///
/// The service does not refuse these agents: its next version may know the tool, and the model may need fewer tokens than estimated.
pub fn agent_problems(catalogue: &Catalogue, config: &agents::Config) -> Vec<agents::Problem> {
    let mut problems = Vec::new();
    for file in catalogue.agent_files() {
        let mut report = |key: &str, message: String, fix: String| {
            let (line, key, file) = (file.line(key), Some(key.to_owned()), file.path.clone());
            problems.push(agents::Problem { file, line, key, message, fix });
        };
        for RuleProblem { key, message, fix } in rule_problems(file) {
            report(key, message, fix);
        }
        for key in agents::REPLACED_KEYS.iter().filter(|key| file.line(key).is_some()) {
            let names = file.agent.chain.iter().map(|entry| entry.name(config));
            let models = names.collect::<Vec<_>>().join(", ");
            let message = "is replaced by a list of models, and still read".to_owned();
            report(key, message, format!("model: [{models}]; remove provider and {key}"));
        }
        let narrow = narrow_window(catalogue, &file.agent, config);
        let narrow = narrow.filter(|_| !file.has_problem("reserve_tokens"));
        if let Some((message, least_tokens)) = narrow {
            report("window_tokens", message, format!("window_tokens: {least_tokens}"));
        }
        let small = small_budget(catalogue, &file.agent, config);
        let small = small.filter(|_| !file.has_problem("reserve_tokens"));
        if let Some((message, least_tokens)) = small {
            report("task_budget_tokens", message, format!("task_budget_tokens: {least_tokens}"));
        }
    }
    problems
}

/// Returns the reason why the window of the file has no room beside the reserve and what every call contains, and a window that is large
/// enough.
fn narrow_window(
    catalogue: &Catalogue,
    agent: &Agent,
    config: &agents::Config,
) -> Option<(String, u64)> {
    let window_tokens = u64::try_from(agent.window_tokens?).ok()?;
    let reserve = agent.reserve_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let reserve_tokens = reserve.unwrap_or_else(|| Budget::default_reserve(window_tokens));
    let system_tokens = system_tokens(catalogue, agent, config);
    let error = Budget::new(window_tokens, reserve_tokens, system_tokens).err()?;
    let least = Budget::least_window(reserve, system_tokens);
    Some((format!("is too small: {error}"), least.next_multiple_of(WINDOW_STEP)))
}

/// Returns the reason why the token budget of the file cannot pay for the first call of any task, and a budget that can.
fn small_budget(
    catalogue: &Catalogue,
    agent: &Agent,
    config: &agents::Config,
) -> Option<(String, u64)> {
    let unsigned = |tokens: i64| u64::try_from(tokens).ok();
    let budget_tokens = agent.budget.tokens.and_then(unsigned)?;
    let window_tokens = agent.window_tokens.and_then(unsigned).unwrap_or(SMALL_WINDOW_TOKENS);
    let reserve_tokens = agent
        .reserve_tokens
        .and_then(unsigned)
        .unwrap_or_else(|| Budget::default_reserve(window_tokens));
    let system_tokens = system_tokens(catalogue, agent, config);
    let least = system_tokens.saturating_add(reserve_tokens);
    let message = format!(
        "is too small: a call needs at least {least} tokens, {system_tokens} for the system part with its tools and {reserve_tokens} reserved for the answer"
    );
    // The prompt of the task comes on top.
    (budget_tokens < least).then(|| (message, (least + 1).next_multiple_of(WINDOW_STEP)))
}

/// Estimates the tokens that each call of an agent contains, as the first turn does. Later parts of the system prompt, such as the brief,
/// come on top.
fn system_tokens(catalogue: &Catalogue, agent: &Agent, config: &agents::Config) -> u64 {
    let skills = catalogue.skills_of(agent);
    let skills = skills.iter().map(|skill| skill.text.as_str());
    Calibration::cold().tokens(fixed_weight(&agent.prompt, skills, &sent_tools(agent, config)))
}

/// Lists the tools that the service sends with each call. A provider that holds the session gets them in another way.
fn sent_tools(agent: &Agent, config: &agents::Config) -> Vec<Arc<ToolSpec>> {
    let is_sent =
        agent.models(config).any(|(provider, _)| !config.session_holders.contains(provider));
    let max_rounds = agent.grants.max_turns.unwrap_or(config.max_rounds);
    match is_sent && max_rounds > 1 {
        true => list_offered_to_agent(agent, agents::MAIN),
        false => Vec::new(),
    }
}
