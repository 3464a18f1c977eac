//! Checks of the files of agents, skills, nodes and flow templates.

use super::Finding;
use crate::{
    config::Config,
    domain::{
        agents::{Catalogue, Problems},
        files::describe_place,
        flows::{self, Templates},
        text::count,
    },
    tools,
};

const CHECK: &str = "agents";
const WHY: &str = "an agent whose file has problems gets no new tasks, and its existing tasks wait";
const REACH: &str = "keys";
const WHY_REACH: &str = "callers on this machine need no key and may do everything, and commands of agents run on this machine";
const FLOWS: &str = "flow templates";
const WHY_FLOWS: &str = "a template with problems cannot be started";

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    match Catalogue::load(&config.agents) {
        Ok(catalogue) => {
            let problems = catalogue.problems();
            let (n_agents, n_skills) = (catalogue.agents().count(), catalogue.skills().count());
            let n_nodes = catalogue.nodes().count();
            // Each folder replaces the built-in files of its kind alone.
            let what = [
                (count(n_agents, "agent", "agents"), &config.agents.folder),
                (count(n_skills, "skill", "skills"), &config.agents.skills_folder),
                (count(n_nodes, "node", "nodes"), &config.agents.nodes_folder),
            ];
            let what = what
                .map(|(files, folder)| format!("{files} {}", describe_place(folder)))
                .join("; ");
            let mut findings = vec![match problems.is_empty() {
                true => report_warnings(&catalogue, config, what),
                false => report_broken(&problems),
            }];
            findings.extend(reach(config, &catalogue));
            findings.push(flow_templates(&config.flows, &catalogue));
            findings
        }
        Err(problems) => vec![
            report_broken(&problems),
            Finding::skipped(FLOWS, "they name agents, and no agents exist", WHY_FLOWS),
        ],
    }
}

/// Reports keys with which agents cannot work as their files say. The service accepts these files.
fn report_warnings(catalogue: &Catalogue, config: &Config, what: String) -> Finding {
    let warnings = Problems(tools::agent_problems(catalogue, &config.agents));
    match warnings.is_empty() {
        true => Finding::ok(CHECK, what, WHY),
        false => {
            let fix = "correct the files, then run `dalsegno agent check`";
            Finding::warn(CHECK, indented(&warnings.to_string()), WHY, fix)
        }
    }
}

fn report_broken(problems: &Problems) -> Finding {
    let what = indented(&problems.to_string());
    Finding::fail(CHECK, what, WHY, "fix the files, then run `dalsegno agent check`")
}

/// Checks if agents could call the API as an operator, around their own tools.
fn reach(config: &Config, catalogue: &Catalogue) -> Option<Finding> {
    let able = catalogue.agents().filter(|agent| agent.grants.can_reach_local_services());
    let names: Vec<&str> = able.map(|agent| agent.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let shown = names.join(", ");
    Some(match config.http.asks_for_keys() {
        true => Finding::ok(REACH, format!("the API asks {shown} for a key"), WHY_REACH),
        false => Finding::warn(
            REACH,
            format!(
                "{shown} may run commands or servers, and these can call the API on {} without a key",
                config.http.listen
            ),
            WHY_REACH,
            "set http.require_key = true and create keys with `dalsegno key create`, or run such agents in separate containers",
        ),
    })
}

fn flow_templates(config: &flows::Config, catalogue: &Catalogue) -> Finding {
    match Templates::load(config, catalogue) {
        Ok(templates) if templates.broken().any(|broken| !broken.built_in) => {
            broken_flows(&templates.problems())
        }
        Ok(templates) => built_in_flows(&templates, config),
        Err(problems) => broken_flows(&problems),
    }
}

/// Reports templates without a problem of their own. Built-in ones name agents that an installation may not have, which needs no correction;
/// agents with problems have a finding of their own.
fn built_in_flows(templates: &Templates, config: &flows::Config) -> Finding {
    let unusable: Vec<&str> = templates.broken().map(|broken| broken.name.as_str()).collect();
    let (n_usable, names) = (templates.all().count(), unusable.join(", "));
    let usable =
        format!("{}, {}", count(n_usable, "template", "templates"), describe_place(&config.folder));
    let unused =
        format!("not used here, because their agents do not exist or have problems: {names}");
    match (unusable.is_empty(), n_usable) {
        (true, _) => Finding::ok(FLOWS, usable, WHY_FLOWS),
        (false, 0) => Finding::skipped(FLOWS, unused, WHY_FLOWS),
        (false, _) => Finding::ok(FLOWS, format!("{usable}; {unused}"), WHY_FLOWS),
    }
}

fn broken_flows(problems: &flows::Problems) -> Finding {
    let what = indented(&problems.to_string());
    Finding::fail(FLOWS, what, WHY_FLOWS, "fix the files, then run `dalsegno flow check`")
}

fn indented(problems: &str) -> String {
    problems.replace('\n', "\n      ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn built_in_templates_without_their_agents_are_not_called_in_order() {
        let config = flows::Config { folder: "no/such/folder".into() };
        let found = flow_templates(&config, &Catalogue::default());
        assert_eq!(found.status, Status::Skipped, "{found:?}");
        assert!(found.what.contains("reviewed-text"), "{found:?}");
    }
}
