//! Configuration sections of the providers, and the names that they define.

use super::{Capabilities, claude, endpoint, ollama, sim};

/// Names that no endpoint may have: those of the built-in providers.
pub const RESERVED_NAMES: [&str; 3] = [claude::NAME, ollama::NAME, sim::NAME];

/// Configuration sections of the providers.
#[derive(Debug, Clone)]
pub struct Sections {
    pub claude: claude::Config,
    pub ollama: ollama::Config,
    pub sim: sim::Config,
    /// The sections `[providers.NAME]`.
    pub endpoints: Vec<endpoint::Config>,
}

impl Sections {
    /// Lists the names that agents' files may use: the built-in providers, then the endpoints.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let endpoints = self.endpoints.iter().map(|endpoint| endpoint.name.as_str());
        [claude::NAME, ollama::NAME, sim::NAME].into_iter().chain(endpoints)
    }

    /// Returns the abilities of a provider. `None`: there is none with this name.
    pub fn capabilities(&self, name: &str) -> Option<Capabilities> {
        match name {
            claude::NAME => Some(self.claude.capabilities()),
            ollama::NAME => Some(Capabilities::OF_HTTP),
            sim::NAME => Some(sim::Config::CAPABILITIES),
            _ => self.endpoint(name).map(|_| Capabilities::OF_HTTP),
        }
    }

    /// Returns a model that `agents.model` could name for a provider, as an example. `None`: the provider accepts the default.
    pub fn example_model(&self, name: &str) -> Option<&'static str> {
        match name {
            claude::NAME => Some("sonnet"),
            ollama::NAME => Some("qwen3:8b"),
            sim::NAME => None,
            _ => self.endpoint(name).map(|_| "a model of the endpoint"),
        }
    }

    pub fn endpoint(&self, name: &str) -> Option<&endpoint::Config> {
        self.endpoints.iter().find(|endpoint| endpoint.name == name)
    }
}
