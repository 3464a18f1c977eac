//! The providers that this process has, by the names that sessions and agents' files use.

use super::{
    Error, Provider,
    claude::Claude,
    ollama::{self, Ollama},
    sim::{self, Sim},
};

#[derive(Debug)]
pub struct Available {
    claude: Claude,
    ollama: Ollama,
    sim: Sim,
}

impl Available {
    /// Connects to nothing yet.
    pub fn new(claude: Claude, ollama: &ollama::Config, sim: &sim::Config) -> Result<Self, Error> {
        Ok(Self { claude, ollama: Ollama::new(ollama.clone())?, sim: Sim::new(sim.clone())? })
    }

    pub fn named(&self, name: &str) -> Option<&dyn Provider> {
        match name {
            "claude" => Some(&self.claude),
            "ollama" => Some(&self.ollama),
            "sim" => Some(&self.sim),
            _ => None,
        }
    }

    /// For its folders on this host.
    pub fn claude(&self) -> &Claude {
        &self.claude
    }
}
