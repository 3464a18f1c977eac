//! Texts of the demo on all providers: the models, the agents, and the facts that they are told.

use std::{fs, path::Path};

pub(super) const CAMPAIGN: &str = "The harbour log";

pub(super) const BRIEF: &str = "\
Each clerk keeps the log of one quay. The harbour master tells where a ship has moored, and asks now and then where all of them are.";

/// Providers, in the order of the first agent's chain.
pub(super) const CLAUDE: &str = "claude";
pub(super) const OLLAMA: &str = "ollama";
pub(super) const LOCAL: &str = "local";
pub(super) const ANTHROPIC: &str = "anthropic";
pub(super) const SIM: &str = "sim";

/// A model of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModelScript {
    pub(super) provider: &'static str,
    pub(super) model: &'static str,
    /// Failure of its calls.
    pub(super) failure: &'static str,
}

pub(super) const MODELS: [ModelScript; 5] = [
    ModelScript { provider: CLAUDE, model: "claude-sonnet-5", failure: "status 500" },
    ModelScript { provider: OLLAMA, model: "qwen3:8b", failure: "connection closed" },
    ModelScript { provider: LOCAL, model: "qwen3-32b", failure: "HTML page, status 502" },
    ModelScript { provider: ANTHROPIC, model: "claude-sonnet-5", failure: "answer broken off" },
    ModelScript { provider: SIM, model: "sim-1", failure: "status 500" },
];

/// Agents; each begins with the model of its place.
pub(super) const AGENTS: [&str; MODELS.len()] = ["ann", "bob", "cid", "dan", "eve"];

const SHIPS: [&str; MODELS.len()] = ["Merula", "Sterna", "Anser", "Grus", "Milvus"];

/// Prefix of each fact. The scripted servers and the simulation quote the words of a call that begin with it.
pub(super) const PREFIX: &str = "PIER-";

impl ModelScript {
    /// Returns the name of the model in chains.
    pub(super) fn entry(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// Returns the fact that an agent is told in a round. Both are counted from 0.
pub(super) fn fact(agent: usize, round: usize) -> String {
    format!("{PREFIX}{}-{}", agent + 1, 100 + 17 * round + agent)
}

/// Returns the prompt of a round. `fails`: the simulation fails it.
pub(super) fn prompt(agent: usize, round: usize, fails: bool) -> String {
    let ship = SHIPS[round % SHIPS.len()];
    let directive = if fails { " [[sim: error 500]]" } else { "" };
    format!(
        "The {ship} has moored at {}. Which piers are in your log? [[sim: quote {PREFIX}]]{directive}",
        fact(agent, round)
    )
}

/// Returns the prompt of the last round, which tells nothing new.
pub(super) fn last_prompt() -> String {
    format!("Which piers are in your log? [[sim: quote {PREFIX}]]")
}

/// Writes the agents' files. Each chain has all models, and begins with another one. An entry rests after one failure.
pub(super) fn write_agents(folder: &Path, models: &[ModelScript]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (first, agent) in AGENTS.iter().enumerate().take(models.len()) {
        let chain = models.iter().cycle().skip(first).take(models.len());
        let chain: String = chain
            .map(|model| format!("  - {{ model: \"{}\", errors: 1 }}\n", model.entry()))
            .collect();
        let file = format!(
            "---\nname: {agent}\ndescription: Keeps the log of a quay\nmodel:\n{chain}---\nYou keep the log of a quay. Answer with all piers \
             that you were told.\n"
        );
        fs::write(folder.join(format!("{agent}.md")), file)?;
    }
    Ok(())
}
