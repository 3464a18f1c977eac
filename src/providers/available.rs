//! The providers that this process has, by the names that sessions and agents' files use.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    Error, Provider,
    claude::Claude,
    ollama::{self, Ollama},
    sim::{self, Sim},
};

/// How long to wait for a server's word on a model's window. The configured window is good enough to plan with.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Available {
    claude: Claude,
    ollama: Ollama,
    /// Of models that the server has told nothing about yet.
    configured: ollama::Config,
    sim: Sim,
}

impl Available {
    /// Connects to nothing yet.
    pub fn new(claude: Claude, ollama: &ollama::Config, sim: &sim::Config) -> Result<Self, Error> {
        Ok(Self {
            claude,
            ollama: Ollama::new(ollama.clone())?,
            configured: ollama.clone(),
            sim: Sim::new(sim.clone())?,
        })
    }

    pub fn named(&self, name: &str) -> Option<&dyn Provider> {
        match name {
            "claude" => Some(&self.claude),
            "ollama" => Some(&self.ollama),
            "sim" => Some(&self.sim),
            _ => None,
        }
    }

    /// The one provider that keeps conversations itself.
    pub fn claude(&self) -> &Claude {
        &self.claude
    }

    /// The window to plan a call with. `None`: there is no such provider.
    ///
    /// May ask the provider's server, once for each model, so no database transaction may be open.
    pub async fn window_tokens(
        &self,
        name: &str,
        model: &str,
        cancel: &CancellationToken,
    ) -> Option<u32> {
        match name {
            "claude" => Some(self.claude.window_tokens(model)),
            "ollama" => {
                // A server that is away says so again when it is called, in words that somebody will read.
                let asked = timeout(WINDOW_TIMEOUT, self.ollama.window_tokens(model, cancel)).await;
                Some(match asked {
                    Ok(Ok(window_tokens)) => window_tokens,
                    _ => self.configured.num_ctx_of(model),
                })
            }
            "sim" => Some(self.sim.window_tokens()),
            _ => None,
        }
    }
}
