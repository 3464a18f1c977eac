//! The section `[memory]`.

use std::time::Duration;

use chrono::TimeDelta;
use serde::Deserialize;

use super::BODY_MAX_BYTES;
use crate::settings::Checks;

/// What has stems in every Postgres that is supported; `simple` has none.
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
/// A tool has ten seconds for all of its answer, and words have to be looked for in the rest.
const MAX_QUESTION_MS: u64 = 5_000;
/// A century: far from where subtracting from a point in time overflows.
const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Of one item's text.
    pub item_max_bytes: usize,
    /// Of all that one agent has written in a campaign and that is stored.
    pub agent_max_bytes: i64,
    /// From this share of a limit on, whoever writes is warned.
    pub warn_percent: u8,
    /// Of all edicts together, in the system part of a call.
    pub edicts_max_bytes: i32,
    /// Whose stems a search knows beside the words as they are.
    pub language: String,
    /// The model of Ollama that says what texts mean; empty: none, and words alone are looked for.
    pub embeddings_model: String,
    /// How long a search waits for what its question means.
    pub embeddings_timeout_ms: u64,
    /// What is less near to a question is not found by its meaning.
    pub embeddings_min_percent: u8,
    /// What was revoked or has expired is kept so long.
    pub keep_days: u32,
}

impl Config {
    pub fn keep(&self) -> TimeDelta {
        TimeDelta::days(self.keep_days.into())
    }

    /// The model that says what texts mean, if one does.
    pub fn embeddings_model(&self) -> Option<&str> {
        Some(self.embeddings_model.as_str()).filter(|model| !model.is_empty())
    }

    pub fn embeddings_timeout(&self) -> Duration {
        Duration::from_millis(self.embeddings_timeout_ms)
    }

    /// 1 is the same direction, 0 has nothing in common.
    pub fn embeddings_least_similarity(&self) -> f64 {
        f64::from(self.embeddings_min_percent) / 100.0
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("memory.item_max_bytes", self.item_max_bytes as u64, 1);
        if self.item_max_bytes > BODY_MAX_BYTES {
            let message = format!("is {}, more than an item can have", self.item_max_bytes);
            checks.fail("memory.item_max_bytes", message, format!("at most {BODY_MAX_BYTES}"));
        }
        if self.agent_max_bytes < 1 {
            let message = format!("is {}", self.agent_max_bytes);
            checks.fail("memory.agent_max_bytes", message, "1048576");
        }
        if !(1..=100).contains(&self.warn_percent) {
            let message = format!("is {}, but has to be from 1 to 100", self.warn_percent);
            checks.fail("memory.warn_percent", message, "80");
        }
        if self.edicts_max_bytes < 0 {
            let message = format!("is {}", self.edicts_max_bytes);
            checks.fail(
                "memory.edicts_max_bytes",
                message,
                "32768; 0 tells agents only their names",
            );
        }
        if !LANGUAGES.contains(&self.language.as_str()) {
            let message = format!("is `{}`, which is not known", self.language);
            checks.fail("memory.language", message, format!("one of {}", LANGUAGES.join(", ")));
        }
        if !(1..=MAX_QUESTION_MS).contains(&self.embeddings_timeout_ms) {
            let wanted = format!(
                "is {}, but has to be from 1 to {MAX_QUESTION_MS}",
                self.embeddings_timeout_ms
            );
            checks.fail("memory.embeddings_timeout_ms", wanted, "2000");
        }
        if self.embeddings_min_percent > 100 {
            let message =
                format!("is {}, but has to be from 0 to 100", self.embeddings_min_percent);
            checks.fail("memory.embeddings_min_percent", message, "30");
        }
        if !(1..=MAX_DAYS).contains(&self.keep_days) {
            let message = format!("is {}, but has to be from 1 to {MAX_DAYS}", self.keep_days);
            checks.fail("memory.keep_days", message, "90");
        }
    }
}
