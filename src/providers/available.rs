//! The providers that this process has, by the names that sessions and agents' files use.

use super::{
    Error, Provider,
    claude::{self, Claude},
    ollama::{self, Ollama},
    sim::{self, Sim},
};

/// Configuration sections of the providers.
#[derive(Debug, Clone)]
pub struct Sections {
    pub claude: claude::Config,
    pub ollama: ollama::Config,
    pub sim: sim::Config,
}

#[derive(Debug)]
pub struct Available {
    claude: Claude,
    ollama: Ollama,
    sim: Sim,
}

impl Available {
    /// Builds all providers. No connection is opened yet.
    pub fn new(claude: Claude, sections: &Sections) -> Result<Self, Error> {
        let ollama = Ollama::new(sections.ollama.clone())?;
        let sim = Sim::new(sections.sim.clone())?;
        Ok(Self { claude, ollama, sim })
    }

    pub fn find(&self, name: &str) -> Option<&dyn Provider> {
        match name {
            "claude" => Some(&self.claude),
            "ollama" => Some(&self.ollama),
            "sim" => Some(&self.sim),
            _ => None,
        }
    }

    /// Returns Claude, for its configuration and its folders on this host.
    pub fn claude(&self) -> &Claude {
        &self.claude
    }
}
