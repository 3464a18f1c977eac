//! The providers that this process has, by the names that sessions and agents' files use.

use std::collections::BTreeMap;

use super::{
    Error, Provider, Sections, Variables,
    anthropic::Anthropic,
    claude::{self, Claude},
    endpoint::{self, Endpoint},
    ollama::{self, Ollama},
    openai::OpenAi,
    sim::{self, Sim},
};

#[derive(Debug)]
pub struct Available {
    claude: Claude,
    others: BTreeMap<String, Box<dyn Provider>>,
}

impl Available {
    /// Builds all providers. No connection is opened yet. `variables` looks up the variables with keys of endpoints.
    pub fn new(
        claude: Claude,
        sections: &Sections,
        variables: &Variables<'_>,
    ) -> Result<Self, Error> {
        let ollama = Ollama::new(sections.ollama.clone())?;
        let sim = Sim::new(sections.sim.clone())?;
        let mut others: BTreeMap<String, Box<dyn Provider>> = BTreeMap::new();
        others.insert(ollama::NAME.to_owned(), Box::new(ollama));
        others.insert(sim::NAME.to_owned(), Box::new(sim));
        for config in &sections.endpoints {
            let endpoint = Endpoint::new(config.clone(), variables)?;
            let provider: Box<dyn Provider> = match config.kind {
                endpoint::Kind::OpenAi => Box::new(OpenAi::new(endpoint)),
                endpoint::Kind::Anthropic => Box::new(Anthropic::new(endpoint)),
            };
            others.insert(config.name.clone(), provider);
        }
        Ok(Self { claude, others })
    }

    pub fn find(&self, name: &str) -> Option<&dyn Provider> {
        match name {
            claude::NAME => Some(&self.claude),
            _ => self.others.get(name).map(AsRef::as_ref),
        }
    }

    /// Returns Claude, for its configuration and its folders on this host.
    pub fn claude(&self) -> &Claude {
        &self.claude
    }
}
