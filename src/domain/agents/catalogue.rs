//! All agents, skills and nodes together.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Agent, Config, FileKind, LookupError, Node, Problems, Skill,
    agent::{self, ParsedAgent},
    node,
    servers::ParseContext,
    shipped, skill,
};
use crate::domain::files::{self, File, Problem, SourceFile, SourceKind, nearest};

/// The files of an installation: those without problems, and why the others are refused.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    agents: BTreeMap<String, Arc<Agent>>,
    skills: BTreeMap<String, Arc<Skill>>,
    nodes: BTreeMap<String, Arc<Node>>,
    broken_agents: BTreeMap<String, BrokenAgent>,
    /// By name, the first problem of each.
    broken_nodes: BTreeMap<String, String>,
    agent_files: Vec<AgentFile>,
    problems: Vec<Problem>,
    /// All files as they were read.
    sources: Vec<SourceFile>,
}

/// The file of an agent, with problems or without. Keys with problems have their default in `agent`.
#[derive(Debug, Clone)]
pub struct AgentFile {
    pub agent: Arc<Agent>,
    /// The path, as shown to people.
    pub path: String,
    lines: BTreeMap<&'static str, usize>,
    /// The keys with problems.
    broken_keys: Vec<String>,
}

impl AgentFile {
    /// Returns the line of a key, if the file has the key.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// Returns true if the value of a key is refused, so that `agent` has its default.
    pub fn has_problem(&self, key: &str) -> bool {
        self.broken_keys.iter().any(|broken| broken == key)
    }
}

/// An agent whose file has problems.
#[derive(Debug, Clone)]
struct BrokenAgent {
    /// The first of them.
    problem: String,
    /// The last version that this process read without problems, for turns that are running.
    last: Option<Arc<Agent>>,
}

impl Catalogue {
    /// Reads all files. A file with problems is refused alone, with the agents that need it ([`Self::problems`]).
    ///
    /// # Errors
    ///
    /// A folder cannot be read, or there is no agent at all.
    pub fn load(config: &Config) -> Result<Self, Problems> {
        Self::load_naming(config, &RefCell::default())
    }

    /// Like [`Self::load`]. Also adds the further files that these name, such as readings, to `named`, even if they have problems.
    pub(super) fn load_naming(
        config: &Config,
        named: &RefCell<Vec<PathBuf>>,
    ) -> Result<Self, Problems> {
        let in_folder = |folder: &Path, place: fn(&Path) -> Option<(String, PathBuf)>| {
            files::read_folder(folder, place).map_err(|problem| Problems(vec![problem]))
        };
        let nodes = in_folder(&config.nodes_folder, files::markdown)?;
        let nodes = nodes.unwrap_or_else(shipped::nodes);
        let skills = in_folder(&config.skills_folder, skill_file)?;
        let skills = skills.unwrap_or_else(shipped::skills);
        let agents = in_folder(&config.folder, files::markdown)?;
        let agents = agents.unwrap_or_else(shipped::agents);
        if agents.is_empty() {
            let fix =
                "a file <name>.md per agent; without the folder, the built-in agents are used";
            let folder = config.folder.display().to_string();
            return Err(Problems(vec![Problem::of_file(&folder, "contains no agent", fix)]));
        }
        let around = ParseContext::new(config, named);
        let mut catalogue = Self::default();
        catalogue.add_nodes(&config.nodes_folder, &around, &nodes);
        let broken_skills = catalogue.add_skills(&skills);
        let skill_names = SkillNames {
            all: skills.iter().map(|file| &*file.name).collect(),
            broken: broken_skills,
        };
        catalogue.add_agents(&around, &agents, &skill_names);
        catalogue.add_sources(SourceKind::Agent, &agents);
        catalogue.add_sources(SourceKind::Skill, &skills);
        catalogue.add_sources(SourceKind::Node, &nodes);
        Ok(catalogue)
    }

    /// Returns a copy with other problems: those of a folder that cannot be used now.
    pub(super) fn with_problems(&self, problems: Problems) -> Self {
        Self { problems: problems.0, ..self.clone() }
    }

    /// Lists the problems of all refused files.
    pub fn problems(&self) -> Problems {
        Problems(self.problems.clone())
    }

    /// Lists all files of agents, skills and nodes, also those with problems.
    pub fn sources(&self) -> &[SourceFile] {
        &self.sources
    }

    pub fn agent(&self, name: &str) -> Result<&Arc<Agent>, LookupError> {
        self.agents.get(name).ok_or_else(|| match self.broken_agents.get(name) {
            Some(broken) => LookupError::Broken {
                noun: FileKind::Agent,
                name: name.to_owned(),
                problem: broken.problem.clone(),
            },
            None => self.unknown_agent(name),
        })
    }

    /// Finds the agent of a turn that is already running. If its file is broken now, this is its last version without problems.
    pub fn agent_of_running_turn(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.get(name).or_else(|| self.broken_agents.get(name)?.last.as_ref())
    }

    /// Checks that an agent's file has this name. The file may have problems: a broken agent can be paused, and appears on the board.
    pub fn check_name(&self, name: &str) -> Result<(), LookupError> {
        self.has_agent(name).then_some(()).ok_or_else(|| self.unknown_agent(name))
    }

    /// Returns true if an agent's file has this name, with problems or without.
    pub fn has_agent(&self, name: &str) -> bool {
        self.agents.contains_key(name) || self.broken_agents.contains_key(name)
    }

    /// The names of the agents that are refused.
    pub fn broken_agents(&self) -> impl Iterator<Item = &str> {
        self.broken_agents.keys().map(String::as_str)
    }

    /// Finds the agent whose name is closest to an unknown one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let names = self.agents.keys().map(String::as_str);
        nearest(&name.to_lowercase(), names.chain(self.broken_agents()))
    }

    fn unknown_agent(&self, name: &str) -> LookupError {
        let names = || self.agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let is_hidden = shipped::agents().iter().any(|file| file.name == name);
        let advice = match self.nearest(name) {
            _ if is_hidden => format!(
                "it is built in, but the folder of agents replaces the built-in ones; known agents are {}",
                names()
            ),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names()),
        };
        LookupError::Unknown { noun: FileKind::Agent, name: name.to_owned(), advice }
    }

    /// Copies the last versions of broken agents from `before`, for turns that are running.
    pub(super) fn keep_last_versions(&mut self, before: &Self) {
        for (name, broken) in &mut self.broken_agents {
            broken.last = before.agent_of_running_turn(name).cloned();
        }
    }

    /// Hashes the prompt that sessions of an instance are made with, and for the lead the roster too: SHA-256, in hex.
    pub fn prompt_hash(&self, agent: &Agent, instance: &str) -> String {
        if !agent.leads(instance) {
            return agent.prompt_hash.clone();
        }
        let mut bytes = agent.prompt_hash.clone().into_bytes();
        // Broken agents stay in the roster, so that a temporary mistake in a file does not change the hash.
        let broken = self.broken_agents.values().filter_map(|broken| broken.last.as_ref());
        let mut roster: Vec<&Arc<Agent>> = self.agents().chain(broken).collect();
        roster.sort_by(|a, b| a.name.cmp(&b.name));
        for text in roster.into_iter().flat_map(|agent| [&agent.name, &agent.description]) {
            // The length in front keeps the bytes of different rosters different.
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        agent::hash(&bytes)
    }

    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    /// Lists the files of all agents, also of broken ones, except those whose front matter cannot be read.
    pub fn agent_files(&self) -> &[AgentFile] {
        &self.agent_files
    }

    /// The skills of an agent, in the order of its file.
    pub fn skills_of(&self, agent: &Agent) -> Vec<Arc<Skill>> {
        agent.skills.iter().filter_map(|name| self.skills.get(name).cloned()).collect()
    }

    pub fn skills(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// Lists the agents that may read a part of their campaign's blackboard.
    pub fn blackboard_readers(&self) -> Vec<String> {
        let shown = |agent: &&Arc<Agent>| !agent.grants.blackboard.read.is_empty();
        self.agents().filter(shown).map(|agent| agent.name.clone()).collect()
    }

    /// The agents that are told facts with each task.
    pub fn agents_with_facts(&self) -> Vec<String> {
        self.agents().filter(|agent| agent.told_facts).map(|agent| agent.name.clone()).collect()
    }

    /// Returns the lead: the agent that answers posts without an addressee.
    pub fn lead(&self) -> Option<&Arc<Agent>> {
        self.agents.values().find(|agent| agent.lead)
    }

    pub fn node(&self, name: &str) -> Result<&Arc<Node>, LookupError> {
        let (noun, names) = (FileKind::Node, || self.nodes.keys().map(String::as_str));
        self.nodes.get(name).ok_or_else(|| match self.broken_nodes.get(name) {
            Some(problem) => {
                LookupError::Broken { noun, name: name.to_owned(), problem: problem.clone() }
            }
            None => LookupError::Unknown {
                noun,
                name: name.to_owned(),
                advice: match nearest(name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write its instructions to <name>.md in agents.nodes_folder".to_owned(),
                },
            },
        })
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    fn add_nodes(&mut self, folder: &Path, around: &ParseContext<'_>, nodes: &[File]) {
        for file in nodes {
            match node::parse(file, folder, around) {
                Ok(node) => _ = self.nodes.insert(node.name.clone(), Arc::new(node)),
                Err(found) => {
                    let problem = self.add_problems(found);
                    self.broken_nodes.insert(file.name.clone(), problem);
                }
            }
        }
    }

    /// Returns the names of those with problems.
    fn add_skills(&mut self, skills: &[File]) -> Vec<String> {
        let mut broken = Vec::new();
        for file in skills {
            match skill::parse(file) {
                Ok(skill) => _ = self.skills.insert(skill.name.clone(), Arc::new(skill)),
                Err(found) => {
                    self.add_problems(found);
                    broken.push(file.name.clone());
                }
            }
        }
        broken
    }

    fn add_agents(&mut self, around: &ParseContext<'_>, agents: &[File], skills: &SkillNames<'_>) {
        let mut files: Vec<ParsedFile<'_>> =
            agents.iter().map(|file| (file, agent::parse(file, around))).collect();
        for (file, parsed) in &mut files {
            if let Ok(parsed) = parsed {
                let found = check_skills(file, parsed, skills);
                parsed.problems.extend(found);
            }
        }
        let lead = lead_of(&files);
        for (file, parsed) in files {
            let fitting = parsed.and_then(|mut parsed| {
                let second = check_single_lead(file, &parsed, lead.as_deref());
                parsed.problems.extend(second);
                parsed.problems.sort_by_key(|problem| problem.line);
                let ParsedAgent { agent, problems, lines } = parsed;
                let agent = Arc::new(agent);
                self.agent_files.push(AgentFile {
                    agent: Arc::clone(&agent),
                    path: file.path.clone(),
                    lines,
                    broken_keys: problems.iter().filter_map(|it| it.key.clone()).collect(),
                });
                if problems.is_empty() { Ok(agent) } else { Err(problems) }
            });
            match fitting {
                Ok(agent) => _ = self.agents.insert(agent.name.clone(), agent),
                Err(found) => {
                    let problem = self.add_problems(found);
                    self.broken_agents
                        .insert(file.name.clone(), BrokenAgent { problem, last: None });
                }
            }
        }
    }

    fn add_sources(&mut self, kind: SourceKind, files: &[File]) {
        let sources = files.iter().map(|file| SourceFile::of(kind, file, &self.problems));
        self.sources.extend(sources.collect::<Vec<_>>());
    }

    /// Returns the first of them in one line.
    fn add_problems(&mut self, found: Vec<Problem>) -> String {
        let first = found.first().map(Problem::in_one_line).unwrap_or_default();
        self.problems.extend(found);
        first
    }
}

/// Names of all skills, and of those whose files have problems.
struct SkillNames<'a> {
    all: Vec<&'a str>,
    broken: Vec<String>,
}

fn check_skills(file: &File, parsed: &ParsedAgent, known: &SkillNames<'_>) -> Vec<Problem> {
    let problem = |message: String, fix: String| Problem {
        line: parsed.lines.get("skills").copied(),
        key: Some("skills".to_owned()),
        ..Problem::of_file(&file.path, message, fix)
    };
    let unfit = |name: &String| match known.all.contains(&name.as_str()) {
        true if known.broken.contains(name) => Some(problem(
            format!("the file of the skill `{name}` has problems"),
            "skills without it, or fix that file".to_owned(),
        )),
        true => None,
        false => Some(problem(
            format!("there is no skill `{name}`"),
            match nearest(name, known.all.iter().copied()) {
                Some(near) => format!("{near} (the closest match)"),
                None => format!("one of: {}", known.all.join(", ")),
            },
        )),
    };
    parsed.agent.skills.iter().filter_map(unfit).collect()
}

/// A file with its agent, or with the reason why it cannot be read.
type ParsedFile<'a> = (&'a File, Result<ParsedAgent, Vec<Problem>>);

/// Returns the name of the first lead. A lead without problems comes first: a broken file must not refuse another agent.
fn lead_of(files: &[ParsedFile<'_>]) -> Option<String> {
    let leads = || {
        let parsed = files.iter().filter_map(|(file, parsed)| Some((file, parsed.as_ref().ok()?)));
        parsed.filter(|(_, parsed)| parsed.agent.lead)
    };
    let fitting = leads().find(|(_, parsed)| parsed.problems.is_empty());
    fitting.or_else(|| leads().next()).map(|(file, _)| file.name.clone())
}

/// Reports a second lead: both would answer posts without an addressee.
fn check_single_lead(file: &File, parsed: &ParsedAgent, lead: Option<&str>) -> Option<Problem> {
    let first = lead.filter(|first| parsed.agent.lead && *first != file.name)?;
    Some(Problem {
        line: parsed.lines.get("lead").copied(),
        key: Some("lead".to_owned()),
        ..Problem::of_file(
            &file.path,
            format!("`{first}` is the lead already"),
            "lead: false, in one of the two",
        )
    })
}

/// Returns the name of the folder `<name>`, and its file. A `.md` file beside the folders is a mistake: it keeps its extension in the name,
/// which is then reported.
pub(super) fn skill_file(path: &Path) -> Option<(String, PathBuf)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    match path.is_dir() {
        true => Some((name, path.join("SKILL.md"))),
        false => (path.extension()? == "md").then(|| (name, path.to_owned())),
    }
}
