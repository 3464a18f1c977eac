//! The section `[sim]`.

use std::time::Duration;

use serde::Deserialize;

use super::fault::Direction;
use crate::providers::{Capabilities, Prestart, Problem};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub window_tokens: u32,
    /// Milliseconds until the first word of an answer.
    pub latency_ms: u64,
    /// Milliseconds after each piece of an answer.
    pub chunk_delay_ms: u64,
    pub chunk_chars: usize,
    pub summary: SummaryMode,
    pub facts: FactsMode,
    /// Lets `[[sim: …]]` in a prompt direct the simulation.
    pub directives: bool,
    /// Directions for all calls of this process.
    pub faults: Vec<String>,
}

/// Ways to write summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMode {
    /// Every section, every pinned identifier, as much of the rest as fits.
    #[default]
    Honest,
    /// Every section, but none of the identifiers.
    DropsIdentifiers,
    /// Nothing at all.
    Empty,
    /// More than it was given.
    Bloated,
}

/// Ways to read facts about users from their requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactsMode {
    /// The facts that the requests state.
    #[default]
    Honest,
    /// Prose instead of JSON.
    NoJson,
    /// One fact more than the requests state.
    Invents,
    /// Other words each time, as large models use. Facts that the prompt shows as known are left out.
    Rephrases,
}

impl Config {
    /// The abilities of the simulation.
    pub const CAPABILITIES: Capabilities = Capabilities {
        holds_session: false,
        is_simulation: true,
        takes_sampling: false,
        takes_schema: false,
        takes_thinking: false,
        works_in_folder: false,
        prestart: Prestart::Unsupported,
    };

    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(Problem::below("window_tokens", u64::from(self.window_tokens), 64));
        problems.extend(Problem::below("chunk_chars", self.chunk_chars as u64, 1));
        for (at, fault) in self.faults.iter().enumerate() {
            let parsed = fault.parse::<Direction>();
            problems.extend(parsed.err().map(|error| {
                Problem::new(
                    &format!("faults[{at}]"),
                    error.to_string(),
                    "for example \"error 503 once\"",
                )
            }));
        }
        problems
    }

    pub(super) fn latency(&self) -> Duration {
        Duration::from_millis(self.latency_ms)
    }

    pub(super) fn chunk_delay(&self) -> Duration {
        Duration::from_millis(self.chunk_delay_ms)
    }
}
