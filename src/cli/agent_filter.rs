//! The note about an agent that a list is filtered by, if no agent has this name.

use super::{Context, server::Server};
use crate::{domain::files::nearest, operations::ListAgents};

/// Prints the note for an empty list. The name is no error: tasks and sessions of an agent whose file is gone can still be found.
pub(super) async fn note_unknown_agent(given: Option<&str>, context: &Context, server: &Server) {
    let Some(given) = given else { return };
    let names = known_names(context, server).await;
    if let Some(note) = describe_unknown(given, &names) {
        context.output.print_note(&note);
    }
}

/// Lists the names of all agents, also of those whose files have problems. Returns no names if the agents cannot be read, for example
/// because the API key may not list them.
async fn known_names(context: &Context, server: &Server) -> Vec<String> {
    if context.target.is_none() {
        let catalogue = context.catalogue();
        let usable = catalogue.agents().map(|agent| agent.name.clone());
        return usable.chain(catalogue.broken_agents().map(str::to_owned)).collect();
    }
    let Ok(agents) = server.call(ListAgents {}).await else { return Vec::new() };
    let usable = agents.items.iter().filter_map(|agent| agent["name"].as_str());
    // A file is called after its agent.
    let broken = agents.problems.iter().filter_map(|problem| {
        let file = problem.file.rsplit('/').next()?;
        file.strip_suffix(".md")
    });
    usable.chain(broken).map(str::to_owned).collect()
}

/// Describes an unknown agent. `given` may name an instance: `curator_2` or `curator/2`.
fn describe_unknown(given: &str, names: &[String]) -> Option<String> {
    let agent = given.split_once('/').map_or(given, |(agent, _)| agent);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let of_instance = agent.rsplit_once('_').filter(|(_, number)| is_digits(number));
    let is_known = |name: &str| names.iter().any(|known| known == name);
    if names.is_empty() || is_known(agent) || of_instance.is_some_and(|(name, _)| is_known(name)) {
        return None;
    }
    let advice = match nearest(&agent.to_lowercase(), names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`dalsegno agent ls` lists the agents".to_owned(),
    };
    Some(format!("there is no agent `{agent}`: {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_agent_is_described_with_the_closest_name() {
        let names = ["copywriter", "planner"].map(str::to_owned);
        let note = |given| describe_unknown(given, &names);
        let unknown = |text: &str| Some(format!("there is no agent {text}"));
        assert_eq!(note("copywritr"), unknown("`copywritr`: did you mean `copywriter`?"));
        assert_eq!(note("Planer/2"), unknown("`Planer`: did you mean `planner`?"));
        assert_eq!(note("zzz"), unknown("`zzz`: `dalsegno agent ls` lists the agents"));
        for known in ["planner", "planner_2", "planner/eu"] {
            assert_eq!(note(known), None);
        }
        assert_eq!(describe_unknown("zzz", &[]), None, "the agents cannot be read");
    }
}
