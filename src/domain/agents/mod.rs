//! Agents, skills and nodes: files that people write, checked like the configuration.
//!
//! An agent and a node are each `<folder>/<name>.md`, a skill is `<folder>/<name>/SKILL.md` ([`super::files`] reads them). An agent whose
//! file has problems is refused alone: it gets no new tasks, and those that it has wait. While the service runs, changed files are read
//! again.

mod agent;
mod blackboard_grants;
mod blackboard_path;
mod catalogue;
mod draft;
mod formats;
mod grants;
mod instances;
mod library;
mod limits;
mod lookup_error;
mod model_chain;
mod node;
mod problems;
mod provider;
mod reserved;
mod servers;
mod session_mode;
mod shipped;
mod skill;

use serde::Deserialize;

pub use self::{
    agent::{Agent, Options, Think},
    blackboard_grants::Grants as BlackboardGrants,
    blackboard_path::{NoPath, Path as BlackboardPath},
    catalogue::{AgentFile, Catalogue},
    draft::DraftAgent,
    formats::{agent_format, node_format, skill_format},
    grants::{Grants, PermissionMode, corrected_rule},
    instances::{AgentInstance, MAIN, agent_name},
    library::Library,
    limits::LIMITS,
    lookup_error::{FileKind, LookupError},
    model_chain::{ChainEntry, REPLACED_KEYS},
    node::Node,
    problems::Problems,
    provider::{NoProviderName, Provider},
    reserved::{ALL, OPERATOR, SYSTEM},
    servers::{Error as ServersError, OWN_SERVER, Servers},
    session_mode::SessionMode,
    skill::Skill,
};
pub use super::files::{Problem, is_name};
use crate::settings::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub folder: std::path::PathBuf,
    pub skills_folder: std::path::PathBuf,
    pub nodes_folder: std::path::PathBuf,
    /// Milliseconds between two checks of the files for changes. Turns check them when they begin.
    pub look_every_ms: u64,
    /// Providers that files may name: those of the configuration.
    #[serde(skip)]
    pub known_providers: Vec<Provider>,
    /// Those of them that keep the conversation themselves: the service sends them no tools.
    #[serde(skip)]
    pub session_holders: Vec<Provider>,
    /// The provider of agents whose files name none.
    pub provider: Provider,
    pub model: String,
    /// Variables of the service that files may name below `mcpServers`.
    pub variables: Vec<String>,
    /// Failures in a row after which a conversation moves on to the next model of its agent's chain.
    pub fallback_after: i32,
    /// Seconds after which a model that has failed is tried again.
    pub fallback_secs: u64,
    /// Default limit of model calls in one turn, for providers whose tools the service runs. `maxTurns` in an agent's file replaces it.
    pub max_rounds: u32,
    /// Maximum number of identical tool calls in one turn.
    pub max_same_calls: u32,
    pub tool_timeout_secs: u64,
    /// Maximum characters of one tool result that the model is shown.
    pub tool_result_max_chars: u64,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        let folders = [
            ("agents.folder", &self.folder),
            ("agents.skills_folder", &self.skills_folder),
            ("agents.nodes_folder", &self.nodes_folder),
        ];
        for (key, folder) in folders {
            checks.folder(key, folder);
        }
        if self.fallback_after < 1 {
            checks.fail(
                "agents.fallback_after",
                format!("is {}", self.fallback_after),
                "1 or more",
            );
        }
        let at_least = [
            ("agents.max_rounds", u64::from(self.max_rounds), 1),
            ("agents.max_same_calls", u64::from(self.max_same_calls), 1),
            ("agents.tool_timeout_secs", self.tool_timeout_secs, 1),
            ("agents.tool_result_max_chars", self.tool_result_max_chars, 256),
        ];
        for (key, value, least) in at_least {
            if value < least {
                checks.fail(key, format!("is {value}"), format!("{least} or more"));
            }
        }
        if self.model.trim().is_empty() {
            checks.fail("agents.model", "is empty", "a model of agents.provider");
        }
        if !self.known_providers.contains(&self.provider) {
            let fix = format!("one of {}", provider::list(&self.known_providers));
            checks.fail("agents.provider", format!("is `{}`", self.provider), fix);
        }
    }
}
