//! The section `[memory]`.

use std::time::Duration;

use chrono::TimeDelta;
use serde::Deserialize;

use super::BODY_MAX_BYTES;
use crate::settings::Checks;

/// Text search configurations with stemming that every supported Postgres has; `simple` has no stemming.
const LANGUAGES: &[&str] = &[
    "simple",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "turkish",
];
/// A tool has ten seconds for its whole answer; the rest of the time is left for the full-text search.
pub(super) const MAX_QUESTION_MS: u64 = 5_000;
/// A century: far below the value at which subtracting from a point in time overflows.
const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Maximum size of an item's text, in bytes.
    pub item_max_bytes: usize,
    /// Maximum size of all stored items and earlier versions that one agent has written in a campaign, in bytes.
    pub agent_max_bytes: i64,
    /// Percentage of a limit from which the writer gets a warning.
    pub warn_percent: u8,
    /// Maximum size of all edicts together in the system part of a call, in bytes. 0 gives agents only the names.
    pub edicts_max_bytes: i32,
    /// Language whose stems a search matches, besides the exact words. `simple` disables stemming.
    pub language: String,
    /// Ollama model that makes embeddings. Empty disables search by meaning; full-text search remains.
    pub embeddings_model: String,
    /// Timeout for the embedding of a search query, in milliseconds. After it, the search uses full text alone.
    pub embeddings_timeout_ms: u64,
    /// Lowest similarity, in percent, at which a search finds an item by its meaning.
    pub embeddings_min_percent: u8,
    /// Days for which revoked and expired items are kept before the cleanup removes them.
    pub keep_days: u32,
}

impl Config {
    pub fn keep(&self) -> TimeDelta {
        TimeDelta::days(self.keep_days.into())
    }

    /// Returns the embedding model, or None if search by meaning is disabled.
    pub fn embeddings_model(&self) -> Option<&str> {
        Some(self.embeddings_model.as_str()).filter(|model| !model.is_empty())
    }

    pub fn embeddings_timeout(&self) -> Duration {
        Duration::from_millis(self.embeddings_timeout_ms)
    }

    /// Returns the lowest cosine similarity of a hit: 1 is the same direction, 0 is unrelated.
    pub fn embeddings_least_similarity(&self) -> f64 {
        f64::from(self.embeddings_min_percent) / 100.0
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("memory.item_max_bytes", self.item_max_bytes as u64, 1);
        if self.item_max_bytes > BODY_MAX_BYTES {
            let message =
                format!("is {}, which is over the maximum of an item", self.item_max_bytes);
            checks.fail("memory.item_max_bytes", message, format!("at most {BODY_MAX_BYTES}"));
        }
        if self.agent_max_bytes < 1 {
            let message = format!("is {}, but must be at least 1", self.agent_max_bytes);
            checks.fail("memory.agent_max_bytes", message, "1048576");
        }
        if !(1..=100).contains(&self.warn_percent) {
            let message = format!("is {}, but must be from 1 to 100", self.warn_percent);
            checks.fail("memory.warn_percent", message, "80");
        }
        if self.edicts_max_bytes < 0 {
            let message = format!("is {}, but must be 0 or more", self.edicts_max_bytes);
            checks.fail(
                "memory.edicts_max_bytes",
                message,
                "32768, or 0 to show agents only their names",
            );
        }
        if !LANGUAGES.contains(&self.language.as_str()) {
            let message = format!("is `{}`, which is unknown", self.language);
            checks.fail("memory.language", message, format!("one of {}", LANGUAGES.join(", ")));
        }
        if !(1..=MAX_QUESTION_MS).contains(&self.embeddings_timeout_ms) {
            let wanted = format!(
                "is {}, but must be from 1 to {MAX_QUESTION_MS}",
                self.embeddings_timeout_ms
            );
            checks.fail("memory.embeddings_timeout_ms", wanted, "2000");
        }
        if self.embeddings_min_percent > 100 {
            let message = format!("is {}, but must be from 0 to 100", self.embeddings_min_percent);
            checks.fail("memory.embeddings_min_percent", message, "30");
        }
        if !(1..=MAX_DAYS).contains(&self.keep_days) {
            let message = format!("is {}, but must be from 1 to {MAX_DAYS}", self.keep_days);
            checks.fail("memory.keep_days", message, "90");
        }
    }
}
