//! All agents, skills and nodes together.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Agent, Config, Node, Problem, Problems, Skill,
    agent::{self, Parsed},
    nearest, node,
    servers::Surroundings,
    shipped, skill,
};

/// A set of files that fit together.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    agents: BTreeMap<String, Arc<Agent>>,
    skills: BTreeMap<String, Arc<Skill>>,
    nodes: BTreeMap<String, Arc<Node>>,
}

/// There is no such agent, or no such node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {} `{name}`: {advice}", noun.as_str())]
pub struct Unknown {
    pub noun: Noun,
    pub name: String,
    /// The name that was probably meant, or what there is.
    pub advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    Agent,
    Node,
}

/// A file that was found: its path for people, the name that its place gives it, its content.
pub(super) struct File {
    pub path: String,
    pub name: String,
    pub content: Result<String, String>,
}

impl Noun {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Node => "node",
        }
    }
}

impl Catalogue {
    /// Reads all files, and reports all problems of all of them together.
    pub fn load(config: &Config) -> Result<Self, Problems> {
        Self::load_naming(config, &RefCell::default())
    }

    /// The same; what the files name besides is added to `named`, whether or not they have problems.
    pub(super) fn load_naming(
        config: &Config,
        named: &RefCell<Vec<PathBuf>>,
    ) -> Result<Self, Problems> {
        let stem = |path: &Path| {
            (path.extension()? == "md").then(|| path.file_stem()?.to_str().map(str::to_owned))?
        };
        let agents = files(&config.folder, stem);
        let nodes = files(&config.nodes_folder, stem).unwrap_or_else(shipped::nodes);
        let skills =
            files(&config.skills_folder, |path| path.file_name()?.to_str().map(str::to_owned));
        let agents = agents.unwrap_or_else(shipped::agents);
        let skills = skills.unwrap_or_else(shipped::skills);
        let around = Surroundings { folder: &config.folder, variables: &config.variables, named };
        let mut problems = Vec::new();
        let mut catalogue = Self::default();
        catalogue.add_nodes(&config.nodes_folder, &around, &nodes, &mut problems);
        catalogue.add_all(&around, &agents, &skills, &mut problems);
        if problems.is_empty() { Ok(catalogue) } else { Err(Problems(problems)) }
    }

    pub fn agent(&self, name: &str) -> Result<&Arc<Agent>, Unknown> {
        self.agents.get(name).ok_or_else(|| Unknown {
            noun: Noun::Agent,
            name: name.to_owned(),
            advice: match self.nearest(name) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = self.agents.keys().map(String::as_str).collect();
                    format!("there are {}", names.join(", "))
                }
            },
        })
    }

    /// The agent that was probably meant by a name which none has.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(&name.to_lowercase(), self.agents.keys().map(String::as_str))
    }

    /// SHA-256 of what the sessions of an instance are made with, in hex: of its prompt, and for the lead of the roster too.
    pub fn prompt_hash(&self, agent: &Agent, instance: &str) -> String {
        if !agent.leads(instance) {
            return agent.prompt_hash.clone();
        }
        let mut bytes = agent.prompt_hash.clone().into_bytes();
        for text in self.agents().flat_map(|agent| [&agent.name, &agent.description]) {
            // With its length in front, so that no two rosters share their bytes.
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        agent::hash(&bytes)
    }

    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    /// The skills of an agent, in the order of its file.
    pub fn skills_of(&self, agent: &Agent) -> Vec<Arc<Skill>> {
        agent.skills.iter().filter_map(|name| self.skills.get(name).cloned()).collect()
    }

    pub fn skills(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// The names of the agents that are shown something of their campaign's blackboard.
    pub fn blackboard_readers(&self) -> Vec<String> {
        let shown = |agent: &&Arc<Agent>| !agent.grants.blackboard.read.is_empty();
        self.agents().filter(shown).map(|agent| agent.name.clone()).collect()
    }

    /// The agents that are told facts with each task.
    pub fn told_facts(&self) -> Vec<String> {
        self.agents().filter(|agent| agent.told_facts).map(|agent| agent.name.clone()).collect()
    }

    /// The agent that answers what is addressed to nobody.
    pub fn lead(&self) -> Option<&Arc<Agent>> {
        self.agents.values().find(|agent| agent.lead)
    }

    pub fn node(&self, name: &str) -> Result<&Arc<Node>, Unknown> {
        self.nodes.get(name).ok_or_else(|| Unknown {
            noun: Noun::Node,
            name: name.to_owned(),
            advice: match nearest(name, self.nodes.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write what it asks for to <name>.md in agents.nodes_folder".to_owned(),
            },
        })
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    fn add_nodes(
        &mut self,
        folder: &Path,
        around: &Surroundings<'_>,
        nodes: &[File],
        problems: &mut Vec<Problem>,
    ) {
        for file in nodes {
            let parsed = file
                .read()
                .and_then(|content| node::parse(&file.path, &file.name, content, folder, around));
            match parsed {
                Ok(node) => _ = self.nodes.insert(node.name.clone(), Arc::new(node)),
                Err(found) => problems.extend(found),
            }
        }
    }

    fn add_all(
        &mut self,
        around: &Surroundings<'_>,
        agents: &[File],
        skills: &[File],
        problems: &mut Vec<Problem>,
    ) {
        for file in skills {
            match file.read().and_then(|content| skill::parse(&file.path, &file.name, content)) {
                Ok(skill) => _ = self.skills.insert(skill.name.clone(), Arc::new(skill)),
                Err(found) => problems.extend(found),
            }
        }
        let skill_names: Vec<&str> = skills.iter().map(|file| file.name.as_str()).collect();
        let mut lead: Option<String> = None;
        for file in agents {
            let parsed = file
                .read()
                .and_then(|content| agent::parse(&file.path, &file.name, content, around));
            match parsed {
                Ok(parsed) => {
                    problems.extend(unknown_skills(file, &parsed, &skill_names));
                    problems.extend(second_lead(file, &parsed, &mut lead));
                    let agent = parsed.agent;
                    self.agents.insert(agent.name.clone(), Arc::new(agent));
                }
                Err(found) => problems.extend(found),
            }
        }
        if agents.is_empty() {
            let fix = "a file <name>.md per agent; without the folder, the agents that come with Dalsegno are used";
            problems.push(Problem::whole(
                &around.folder.display().to_string(),
                "holds no agent",
                fix,
            ));
        }
    }
}

impl File {
    fn read(&self) -> Result<&str, Vec<Problem>> {
        self.content.as_deref().map_err(|error| {
            let message = format!("cannot be read: {error}");
            vec![Problem::whole(&self.path, message, "a readable file of UTF-8 text")]
        })
    }
}

fn unknown_skills(file: &File, parsed: &Parsed, known: &[&str]) -> Vec<Problem> {
    let unknown = parsed.agent.skills.iter().filter(|name| !known.contains(&name.as_str()));
    unknown
        .map(|name| Problem {
            line: parsed.skills_line,
            key: Some("skills".to_owned()),
            ..Problem::whole(
                &file.path,
                format!("there is no skill `{name}`"),
                match nearest(name, known.iter().copied()) {
                    Some(near) => format!("{near} (did you mean that one?)"),
                    None => format!("one of: {}", known.join(", ")),
                },
            )
        })
        .collect()
}

/// Two leads would both answer what is addressed to nobody.
fn second_lead(file: &File, parsed: &Parsed, lead: &mut Option<String>) -> Option<Problem> {
    if !parsed.agent.lead {
        return None;
    }
    let first = lead.get_or_insert_with(|| parsed.agent.name.clone());
    (*first != parsed.agent.name).then(|| Problem {
        line: parsed.lead_line,
        key: Some("lead".to_owned()),
        ..Problem::whole(
            &file.path,
            format!("`{first}` is the lead already"),
            "lead: false, in one of the two",
        )
    })
}

/// The files of a folder by name. `None`: there is no such folder.
fn files(folder: &Path, name: impl Fn(&Path) -> Option<String>) -> Option<Vec<File>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let file = |path: &PathBuf| {
        let name = name(path)?;
        // A skill is a folder.
        let path = if path.is_dir() { path.join("SKILL.md") } else { path.clone() };
        let is_skill_or_agent = path.file_name()? == "SKILL.md" || path.extension()? == "md";
        is_skill_or_agent.then(|| File {
            content: std::fs::read_to_string(&path).map_err(|error| error.to_string()),
            path: path.display().to_string(),
            name,
        })
    };
    Some(paths.iter().filter_map(file).collect())
}
