//! The section `[ollama]`.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use crate::providers::{Problem, http::parse_base_url};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Base URL of the server. Nothing else decides where calls go.
    pub base_url: String,
    /// Window in tokens of every model that `models` does not name.
    pub num_ctx: u32,
    /// Seconds that the server keeps a model loaded after a call; -1: forever.
    pub keep_alive_secs: i64,
    pub connect_timeout_secs: u64,
    pub first_byte_timeout_secs: u64,
    pub idle_timeout_secs: u64,
    pub total_timeout_secs: u64,
    pub breaker_failures: u32,
    pub breaker_open_secs: u64,
    /// Models with a window of their own.
    pub models: Vec<ModelConfig>,
}

/// Settings of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub name: String,
    pub num_ctx: u32,
}

/// Minimum window: below it not even a short system prompt and a short answer fit.
const LEAST_NUM_CTX: u64 = 512;

impl Config {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.base_url().err());
        let at_least = [
            ("num_ctx", u64::from(self.num_ctx), LEAST_NUM_CTX),
            ("connect_timeout_secs", self.connect_timeout_secs, 1),
            ("first_byte_timeout_secs", self.first_byte_timeout_secs, 1),
            ("idle_timeout_secs", self.idle_timeout_secs, 1),
            ("total_timeout_secs", self.total_timeout_secs, 1),
            ("breaker_failures", u64::from(self.breaker_failures), 1),
            ("breaker_open_secs", self.breaker_open_secs, 1),
        ];
        for (key, value, least) in at_least {
            problems.extend(Problem::below(key, value, least));
        }
        for (at, model) in self.models.iter().enumerate() {
            let key = format!("models[{at}].num_ctx");
            problems.extend(Problem::below(&key, u64::from(model.num_ctx), LEAST_NUM_CTX));
        }
        problems.extend(self.check_names());
        problems.extend(self.check_timeouts());
        problems
    }

    /// Returns the configured window of a model, before its own limit is known.
    pub fn num_ctx_of(&self, model: &str) -> u32 {
        let wanted = full_name(model);
        let configured = self.models.iter().find(|model| full_name(&model.name) == wanted);
        configured.map_or(self.num_ctx, |model| model.num_ctx)
    }

    pub(super) fn base_url(&self) -> Result<Url, Problem> {
        parse_base_url(&self.base_url, "http://127.0.0.1:11434")
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_secs)
    }

    pub(super) fn first_byte_timeout(&self) -> Duration {
        Duration::from_secs(self.first_byte_timeout_secs)
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_secs)
    }

    pub(super) fn total_timeout(&self) -> Duration {
        Duration::from_secs(self.total_timeout_secs)
    }

    pub(super) fn breaker_open(&self) -> Duration {
        Duration::from_secs(self.breaker_open_secs)
    }

    /// Returns the timeout of requests that need no loaded model.
    pub(super) fn request_timeout(&self) -> Duration {
        self.connect_timeout() + self.idle_timeout()
    }

    fn check_names(&self) -> Option<Problem> {
        let names: Vec<String> = self.models.iter().map(|model| full_name(&model.name)).collect();
        let at = (1..names.len()).find(|at| names[..*at].contains(&names[*at]))?;
        let message = format!("lists {} twice", names[at]);
        let key = format!("models[{at}].name");
        Some(Problem::new(&key, message, "one window for each model"))
    }

    fn check_timeouts(&self) -> Option<Problem> {
        let first = self.first_byte_timeout_secs;
        (first > self.total_timeout_secs).then(|| {
            let message = format!("is less than first_byte_timeout_secs = {first}");
            Problem::new("total_timeout_secs", message, format!("at least {first}"))
        })
    }
}

/// Returns the server's own name for a model: without a tag it means `latest`.
pub(super) fn full_name(model: &str) -> String {
    let last = model.rsplit('/').next().unwrap_or_default();
    match last.contains(':') {
        true => model.to_owned(),
        false => format!("{model}:latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qwen3(name: &str, num_ctx: u32) -> ModelConfig {
        ModelConfig { name: name.to_owned(), num_ctx }
    }

    fn config() -> Config {
        Config {
            base_url: "http://localhost:11434/behind/a/proxy".to_owned(),
            num_ctx: 8192,
            keep_alive_secs: 300,
            connect_timeout_secs: 5,
            first_byte_timeout_secs: 600,
            idle_timeout_secs: 120,
            total_timeout_secs: 1800,
            breaker_failures: 5,
            breaker_open_secs: 30,
            models: vec![qwen3("qwen3", 4096)],
        }
    }

    #[test]
    fn a_path_in_the_base_url_is_kept() {
        let url = config().base_url().unwrap().join("api/chat").unwrap();
        assert_eq!(url.as_str(), "http://localhost:11434/behind/a/proxy/api/chat");
    }

    #[test]
    fn a_missing_tag_means_latest() {
        assert_eq!(config().num_ctx_of("qwen3:latest"), 4096);
        assert_eq!(config().num_ctx_of("qwen3"), 4096);
        assert_eq!(config().num_ctx_of("qwen3:8b"), 8192);
        assert_eq!(full_name("host:5000/library/qwen3"), "host:5000/library/qwen3:latest");
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(config().check(), []);
        let mut config = Config {
            base_url: "http://me:secret@localhost".to_owned(),
            num_ctx: 10,
            total_timeout_secs: 60,
            ..config()
        };
        config.models.push(qwen3("qwen3:latest", 1));
        let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
        let expected =
            ["base_url", "num_ctx", "models[1].num_ctx", "models[1].name", "total_timeout_secs"];
        assert_eq!(keys, expected);
        for base_url in ["", "localhost:11434", "file:///etc", "http://h/?q", "http://h/#f"] {
            let config = Config { base_url: base_url.to_owned(), ..config.clone() };
            assert!(config.base_url().is_err(), "{base_url}");
        }
    }
}
