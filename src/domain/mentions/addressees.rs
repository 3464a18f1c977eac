//! Resolving the names in a text to agents.

use serde::{Deserialize, Serialize};

use super::parse;
use crate::domain::{
    agents::{AgentInstance, Catalogue, LookupError, MAIN},
    posts,
};

const ALL: &str = "all";

/// The addressees that a text mentions.
#[derive(Debug, Default)]
pub(super) struct Addressees<'a> {
    pub everybody: bool,
    pub operator: bool,
    /// The agents, each once, in the order of the text.
    pub agents: Vec<AgentInstance<'a>>,
    pub unknown: Vec<UnknownName>,
    /// Agents whose files have problems, each once.
    broken: Vec<&'a str>,
}

/// A mentioned name that no agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnknownName {
    pub name: String,
    /// The closest known name.
    pub nearest: Option<String>,
}

impl<'a> Addressees<'a> {
    /// Resolves the mentions of a text. `@all` stands for the instance `main` of every agent.
    pub fn of(text: &'a str, catalogue: &'a Catalogue) -> Self {
        let mut found = Self::default();
        for name in parse::names(text) {
            match MentionedAgent::resolve(name, catalogue) {
                MentionedAgent::Everybody => found.everybody = true,
                MentionedAgent::Operator => found.operator = true,
                MentionedAgent::One(one) => found.add(one),
                MentionedAgent::Broken(name) => found.add_broken(name),
                MentionedAgent::Unknown => found.add_unknown(name, catalogue),
            }
        }
        if found.everybody {
            catalogue.agents().for_each(|agent| found.add(AgentInstance { agent, instance: MAIN }));
            catalogue.broken_agents().for_each(|name| found.add_broken(name));
        }
        found
    }

    /// Removes the speaker, because an agent cannot call itself.
    pub fn without(mut self, reader: &str) -> Self {
        self.agents.retain(|one| reader_of(one) != reader);
        self
    }

    /// Returns true if every name that failed to resolve is unknown, and there is at least one.
    pub fn are_all_unknown(&self) -> bool {
        !self.unknown.is_empty() && self.broken.is_empty()
    }

    /// Returns true if a mentioned agent is unknown or has a broken file.
    pub fn has_unusable(&self) -> bool {
        !self.unknown.is_empty() || !self.broken.is_empty()
    }

    /// Returns the reasons why mentioned agents with broken files are not called.
    pub fn refusal_notes(&self) -> impl Iterator<Item = String> {
        self.broken.iter().map(|name| {
            format!(
                "`{name}` got no task: its file has problems. `dalsegno agent check` lists them."
            )
        })
    }

    fn add_broken(&mut self, name: &'a str) {
        if !self.broken.contains(&name) {
            self.broken.push(name);
        }
    }

    fn add(&mut self, one: AgentInstance<'a>) {
        if self.agents.iter().all(|known| reader_of(known) != reader_of(&one)) {
            self.agents.push(one);
        }
    }

    fn add_unknown(&mut self, name: &str, catalogue: &Catalogue) {
        if self.unknown.iter().all(|unknown| unknown.name != name) {
            let nearest = catalogue.nearest(name).map(str::to_owned);
            self.unknown.push(UnknownName { name: name.to_owned(), nearest });
        }
    }
}

/// Returns the agent's name on the board.
pub(super) fn reader_of(one: &AgentInstance<'_>) -> String {
    posts::reader(&one.agent.name, one.instance).into_owned()
}

enum MentionedAgent<'a> {
    Everybody,
    Operator,
    One(AgentInstance<'a>),
    /// An agent whose file has problems.
    Broken(&'a str),
    Unknown,
}

impl<'a> MentionedAgent<'a> {
    /// Resolves a name. Trailing `-` and `_` may be Markdown (`_@ann_`) or part of the name, so the full name is tried first.
    fn resolve(name: &'a str, catalogue: &'a Catalogue) -> Self {
        match Self::exactly(name, catalogue) {
            Self::Unknown => Self::exactly(name.trim_end_matches(['-', '_']), catalogue),
            meant => meant,
        }
    }

    fn exactly(name: &'a str, catalogue: &'a Catalogue) -> Self {
        match name {
            ALL => return Self::Everybody,
            posts::OPERATOR => return Self::Operator,
            _ => {}
        }
        match catalogue.resolve_addressee(name, MAIN) {
            Ok(one) => Self::One(one),
            Err(LookupError::Broken { .. }) => Self::Broken(name),
            Err(LookupError::Unknown { .. }) => Self::Unknown,
        }
    }
}
