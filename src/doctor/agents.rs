//! The files of agents and skills.

use super::Finding;
use crate::domain::agents::{Catalogue, Config};

const CHECK: &str = "agents";
const WHY: &str =
    "a service does not start on files with problems, and a running one does not use them";

pub(super) fn examine(config: &Config) -> Finding {
    let place = match config.folder.is_dir() {
        true => format!("in {}", config.folder.display()),
        false => format!("built in, because there is no folder {}", config.folder.display()),
    };
    match Catalogue::load(config) {
        Ok(catalogue) => {
            let (n_agents, n_skills) = (catalogue.agents().count(), catalogue.skills().count());
            Finding::ok(CHECK, format!("{n_agents} agents, {n_skills} skills, {place}"), WHY)
        }
        Err(problems) => {
            let what = problems.to_string().replace('\n', "\n      ");
            Finding::fail(CHECK, what, WHY, "mend the files, then dalsegno agent check")
        }
    }
}
