//! The files of agents, skills and nodes, and of the templates of flows.

use std::path::Path;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        agents::Catalogue,
        flows::{self, Templates},
    },
};

const CHECK: &str = "agents";
const WHY: &str =
    "a service does not start on files with problems, and a running one does not use them";
const REACH: &str = "keys";
const WHY_REACH: &str = "who asks from this machine without a key may do everything, and commands of agents run on this machine";
const FLOWS: &str = "workflows";
const WHY_FLOWS: &str = "no flow can be started while one of the templates has a problem";

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let place = place(&config.agents.folder);
    match Catalogue::load(&config.agents) {
        Ok(catalogue) => {
            let (n_agents, n_skills) = (catalogue.agents().count(), catalogue.skills().count());
            let n_nodes = catalogue.nodes().count();
            let what = format!("{n_agents} agents, {n_skills} skills, {n_nodes} nodes, {place}");
            let mut findings = vec![Finding::ok(CHECK, what, WHY)];
            findings.extend(reach(config, &catalogue));
            findings.push(workflows(&config.flows, &catalogue));
            findings
        }
        Err(problems) => vec![
            Finding::fail(
                CHECK,
                indented(&problems.to_string()),
                WHY,
                "mend the files, then dalsegno agent check",
            ),
            Finding::skipped(FLOWS, "they name agents, whose files have problems", WHY_FLOWS),
        ],
    }
}

/// Whether an agent could go around its own tools and be an operator.
fn reach(config: &Config, catalogue: &Catalogue) -> Option<Finding> {
    let able = catalogue.agents().filter(|agent| agent.grants.may_ask_this_machine());
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
                "{shown} may run commands or servers, which the API on {} obeys without a key",
                config.http.listen
            ),
            WHY_REACH,
            "set http.require_key = true and make keys with `dalsegno key create`, or keep such agents in containers of their own",
        ),
    })
}

fn workflows(config: &flows::Config, catalogue: &Catalogue) -> Finding {
    match Templates::load(config, catalogue) {
        Ok(templates) => {
            let what = format!("{} templates, {}", templates.all().count(), place(&config.folder));
            Finding::ok(FLOWS, what, WHY_FLOWS)
        }
        Err(problems) => Finding::fail(
            FLOWS,
            indented(&problems.to_string()),
            WHY_FLOWS,
            "mend the files, then dalsegno flow templates",
        ),
    }
}

fn place(folder: &Path) -> String {
    match folder.is_dir() {
        true => format!("in {}", folder.display()),
        false => format!("built in, because there is no folder {}", folder.display()),
    }
}

fn indented(problems: &str) -> String {
    problems.replace('\n', "\n      ")
}
