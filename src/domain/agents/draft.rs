//! An agent from a file that is not among those of the installation, to be tried.

use std::{cell::RefCell, sync::Arc};

use super::{
    Agent, Catalogue, Config, Problems, Skill,
    agent::{self, ParsedAgent},
    servers::ParseContext,
};
use crate::domain::files::{File, Problem};

/// The path of the file in its problems.
const PATH: &str = "agent file";

/// An agent that is tried, with its skills from the installation.
#[derive(Debug, Clone)]
pub struct DraftAgent {
    pub agent: Agent,
    pub skills: Vec<Arc<Skill>>,
}

impl DraftAgent {
    /// Reads the text of an agent file as the files of the installation are read. Its name need not be that of a file, nor differ from one.
    pub fn parse(text: &str, catalogue: &Catalogue, config: &Config) -> Result<Self, Problems> {
        let file = File {
            path: PATH.to_owned(),
            name: PATH.to_owned(),
            content: Ok(text.to_owned()),
            is_built_in: false,
        };
        let named = RefCell::default();
        let around = ParseContext::new(config, &named);
        let parsed = agent::parse(&file, &around).map_err(Problems)?;
        let ParsedAgent { agent, mut problems, lines } = parsed;
        problems.retain(|problem| problem.key.as_deref() != Some("name"));
        let skills = catalogue.skills_of(&agent);
        let is_known = |name: &String| skills.iter().any(|skill| skill.name == *name);
        problems.extend(agent.skills.iter().filter(|name| !is_known(name)).map(|name| Problem {
            line: lines.get("skills").copied(),
            key: Some("skills".to_owned()),
            ..Problem::of_file(
                PATH,
                format!("there is no skill `{name}` that can be used"),
                "skills of the installation: `dalsegno agent ls` lists them",
            )
        }));
        match problems.is_empty() {
            true => Ok(Self { agent, skills }),
            false => Err(Problems(problems)),
        }
    }
}
