//! Facts about a server and its models, asked once in a while.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{config::full_name, error::Error, http::Http};
use crate::providers::deadline::CallDeadline;

/// Facts of one server, by model.
#[derive(Debug, Default)]
pub(super) struct Models {
    facts: Mutex<HashMap<String, CachedReply<ModelFacts>>>,
    version: Mutex<Option<CachedReply<Version>>>,
}

/// Facts about one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModelFacts {
    trained_tokens: Option<u32>,
    pub(super) thinking: ThinkingMode,
    /// True if the server says so. A server that does not list capabilities is called all the same: it refuses in words.
    pub(super) has_no_tools: bool,
}

/// Ways to tell a model whether to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingMode {
    /// The model cannot think, and a server refuses the option.
    Never,
    /// On or off, or by level.
    Switch,
    /// By level only; it cannot be turned off.
    Levels,
}

/// Version of a server; `release` is `None` if the text is not that of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    text: String,
    release: Option<(u32, u32)>,
}

#[derive(Debug, Clone)]
struct CachedReply<T> {
    at: Instant,
    answer: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShowReply {
    model_info: Map<String, Value>,
    capabilities: Vec<String>,
    details: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct VersionAnswer {
    version: String,
}

/// Time after which facts are asked again: a model may be pulled anew, a server upgraded.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// Maximum number of cached models, more than any server has loaded. A stream of invented names must not fill the memory.
const MAX_MODELS: usize = 256;
/// First release whose count of prompt tokens includes those that came out of the cache.
const COUNTS_CACHED: (u32, u32) = (0, 30);

impl Models {
    pub(super) async fn facts(
        &self,
        http: &Http,
        model: &str,
        patience: &CallDeadline<'_>,
    ) -> Result<ModelFacts, Error> {
        let name = full_name(model);
        if let Some(known) = self.known_facts(model) {
            return Ok(known);
        }
        // Two callers may both ask. Neither waits for the other, and the answers are the same.
        let shown: ShowReply = match http.model(model, patience).await {
            // A proxy may let only the calls themselves through. The call fails again at an address that is wrong.
            Err(Error::NotOllama { .. }) => ShowReply::default(),
            shown => shown?,
        };
        let facts = ModelFacts::of(&shown);
        let mut known = lock(&self.facts);
        if known.len() >= MAX_MODELS {
            known.clear();
        }
        known.insert(name, CachedReply::now(facts));
        Ok(facts)
    }

    /// Returns the facts that the server has told lately.
    pub(super) fn known_facts(&self, model: &str) -> Option<ModelFacts> {
        let facts = lock(&self.facts);
        facts.get(&full_name(model)).filter(|asked| asked.is_fresh()).map(|asked| asked.answer)
    }

    /// Returns true if counts of prompt tokens can be compared with an estimate.
    pub(super) async fn counts_cached_tokens(
        &self,
        http: &Http,
        patience: &CallDeadline<'_>,
    ) -> Result<bool, Error> {
        match self.version(http, patience).await {
            Ok(version) => Ok(version.counts_cached_tokens()),
            Err(error) if error.is_of_transport() => Err(error),
            Err(error @ (Error::Cancelled | Error::TooLong { .. })) => Err(error),
            // A proxy may let only the calls themselves through.
            Err(_) => Ok(true),
        }
    }

    pub(super) async fn version(
        &self,
        http: &Http,
        patience: &CallDeadline<'_>,
    ) -> Result<Version, Error> {
        if let Some(asked) = lock(&self.version).as_ref().filter(|asked| asked.is_fresh()) {
            return Ok(asked.answer.clone());
        }
        let answer: VersionAnswer = http.version(patience).await?;
        let version = Version::from(answer.version);
        *lock(&self.version) = Some(CachedReply::now(version.clone()));
        Ok(version)
    }
}

impl ModelFacts {
    /// Returns the window of a call: the configured one, capped at the one that the model was trained with.
    pub(super) fn window_tokens(self, configured: u32) -> u32 {
        self.trained_tokens.map_or(configured, |trained| trained.min(configured))
    }

    fn of(shown: &ShowReply) -> Self {
        let architecture = shown.model_info.get("general.architecture").and_then(Value::as_str);
        let key = architecture.map(|name| format!("{name}.context_length"));
        let trained = key.and_then(|key| shown.model_info.get(&key)?.as_u64());
        let family = shown.details.get("family").and_then(Value::as_str).or(architecture);
        let can = |what: &str| shown.capabilities.iter().any(|capability| capability == what);
        let thinks = can("thinking");
        Self {
            trained_tokens: trained.filter(|n| *n > 0).and_then(|n| u32::try_from(n).ok()),
            thinking: match family {
                _ if !thinks => ThinkingMode::Never,
                Some("gptoss" | "gpt-oss") => ThinkingMode::Levels,
                _ => ThinkingMode::Switch,
            },
            has_no_tools: !shown.capabilities.is_empty() && !can("tools"),
        }
    }
}

impl Version {
    /// Returns true if counts include cached tokens. An unknown version is taken for new: otherwise silent truncation would go unnoticed.
    fn counts_cached_tokens(&self) -> bool {
        self.release.is_none_or(|release| release >= COUNTS_CACHED)
    }
}

impl From<String> for Version {
    fn from(text: String) -> Self {
        let mut numbers = text.split(['.', '-', '+']).map(str::parse);
        let release = match (numbers.next(), numbers.next()) {
            // Builds from a source tree have the version 0.0.0.
            (Some(Ok(0)), Some(Ok(0))) => None,
            (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
            _ => None,
        };
        Self { text, release }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T> CachedReply<T> {
    fn now(answer: T) -> Self {
        Self { at: Instant::now(), answer }
    }

    fn is_fresh(&self) -> bool {
        self.at.elapsed() < ASK_AGAIN
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(shown: Value) -> ModelFacts {
        ModelFacts::of(&serde_json::from_value(shown).unwrap())
    }

    #[test]
    fn the_window_is_capped_at_the_models_trained_length() {
        let shown = serde_json::json!({
            "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 4096 },
            "capabilities": ["completion", "thinking"],
        });
        assert_eq!(facts(shown.clone()).window_tokens(8192), 4096);
        assert_eq!(facts(shown.clone()).window_tokens(2048), 2048);
        assert_eq!(facts(shown.clone()).thinking, ThinkingMode::Switch);
        assert!(facts(shown).has_no_tools);
    }

    #[test]
    fn missing_model_facts_cap_nothing() {
        let unknown = facts(serde_json::json!({}));
        assert_eq!(unknown.window_tokens(8192), 8192);
        assert_eq!(unknown.thinking, ThinkingMode::Never);
        assert!(!unknown.has_no_tools);
        let nonsense = serde_json::json!({
            "model_info": { "general.architecture": "x", "x.context_length": 0 },
        });
        assert_eq!(facts(nonsense).window_tokens(8192), 8192);
    }

    #[test]
    fn only_known_old_releases_undercount() {
        let counts = |text: &str| Version::from(text.to_owned()).counts_cached_tokens();
        assert!(counts("0.33.1") && counts("1.0.0") && counts("0.30.0-rc2"));
        assert!(counts("0.0.0") && counts("custom"));
        assert!(!counts("0.29.9") && !counts("0.5.7"));
    }
}
