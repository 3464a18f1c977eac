//! The sections `[providers.NAME]`.

use std::{path::PathBuf, time::Duration};

use reqwest::Url;
use serde::Deserialize;

use crate::providers::{Problem, RESERVED_NAMES, http::parse_base_url, openai::DialectName};

/// One endpoint: a server that agents' files name as `provider: NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name in the heading of the section.
    #[serde(skip)]
    pub name: String,
    /// API that the server speaks.
    pub kind: Kind,
    /// Base URL of the API, with its version. Empty: the address of the kind. Nothing else decides where calls go.
    pub base_url: String,
    /// Server program behind the API.
    pub dialect: DialectName,
    /// Environment variable with the API key. At most one of this and `credential_file` is set.
    pub credential_variable: String,
    /// File with the API key.
    pub credential_file: PathBuf,
    /// Window in tokens of models that neither `models` nor the server describe. 0: the one of the kind.
    pub window_tokens: u32,
    /// Models with a window of their own.
    pub models: Vec<ModelConfig>,
    /// Acceptance of images.
    pub images: FileSupport,
    /// Acceptance of PDF.
    pub pdf: FileSupport,
    /// Lifetime of the server's prompt cache after its last use; 0: the one of the kind, which may be none.
    pub prompt_cache_secs: u64,
    /// Days that a session is kept after its last use.
    pub ttl_days: u32,
    pub connect_timeout_secs: u64,
    pub first_byte_timeout_secs: u64,
    pub idle_timeout_secs: u64,
    pub total_timeout_secs: u64,
    pub breaker_failures: u32,
    pub breaker_open_secs: u64,
}

/// API of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// OpenAI's chat completions, which many servers offer.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
}

/// Acceptance of a kind of files by the models of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSupport {
    /// By the kind of the endpoint and its dialect.
    Auto,
    Yes,
    No,
}

/// Settings of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub name: String,
    pub window_tokens: u32,
}

/// Minimum window: below it not even a short system prompt and a short answer fit.
const LEAST_WINDOW_TOKENS: u64 = 512;
const EXAMPLE_URL: &str = "http://127.0.0.1:8000/v1";
/// Name that only an endpoint of this kind may have.
const ANTHROPIC: &str = "anthropic";

impl Kind {
    fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => EXAMPLE_URL,
            Self::Anthropic => "https://api.anthropic.com/v1",
        }
    }

    fn window_tokens(self) -> u32 {
        match self {
            Self::OpenAi => 32_768,
            Self::Anthropic => 200_000,
        }
    }

    fn prompt_cache_secs(self) -> u64 {
        match self {
            Self::OpenAi => 0,
            Self::Anthropic => 300,
        }
    }
}

impl FileSupport {
    /// Returns true if the files are accepted. `auto`: what the server is known for.
    pub(in crate::providers) fn accepts(self, auto: bool) -> bool {
        match self {
            Self::Auto => auto,
            Self::Yes => true,
            Self::No => false,
        }
    }
}

impl Config {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.check_name());
        problems.extend(self.parse_base_url().err());
        let at_least = [
            ("window_tokens", u64::from(self.window_tokens()), LEAST_WINDOW_TOKENS),
            ("ttl_days", self.ttl_days.into(), 1),
            ("connect_timeout_secs", self.connect_timeout_secs, 1),
            ("first_byte_timeout_secs", self.first_byte_timeout_secs, 1),
            ("idle_timeout_secs", self.idle_timeout_secs, 1),
            ("total_timeout_secs", self.total_timeout_secs, self.first_byte_timeout_secs),
            ("breaker_failures", self.breaker_failures.into(), 1),
            ("breaker_open_secs", self.breaker_open_secs, 1),
        ];
        for (key, value, least) in at_least {
            problems.extend(Problem::below(key, value, least));
        }
        for (at, model) in self.models.iter().enumerate() {
            let key = format!("models[{at}].window_tokens");
            problems.extend(Problem::below(&key, model.window_tokens.into(), LEAST_WINDOW_TOKENS));
            if self.models[..at].iter().any(|other| other.name == model.name) {
                let message = format!("lists {} twice", model.name);
                let key = format!("models[{at}].name");
                problems.push(Problem::new(&key, message, "one window for each model"));
            }
        }
        if !self.credential_variable.is_empty() && !self.credential_file.as_os_str().is_empty() {
            let message = "is set, and credential_file, too";
            problems.push(Problem::new("credential_variable", message, "only one of the two"));
        }
        problems
    }

    /// Returns the configured window of a model, if it has one.
    pub fn window_tokens_of(&self, model: &str) -> Option<u32> {
        let configured = self.models.iter().find(|configured| configured.name == model);
        configured.map(|configured| configured.window_tokens)
    }

    /// Returns the address of the API.
    pub fn base_url(&self) -> &str {
        match self.base_url.is_empty() {
            true => self.kind.base_url(),
            false => &self.base_url,
        }
    }

    /// Returns the window of models that neither `models` nor the server describe.
    pub fn window_tokens(&self) -> u32 {
        match self.window_tokens {
            0 => self.kind.window_tokens(),
            configured => configured,
        }
    }

    /// Returns the lifetime of the server's prompt cache. `None`: it has none that is billed.
    pub(in crate::providers) fn prompt_cache(&self) -> Option<Duration> {
        let secs = match self.prompt_cache_secs {
            0 => self.kind.prompt_cache_secs(),
            configured => configured,
        };
        (secs > 0).then(|| Duration::from_secs(secs))
    }

    /// Returns the variable or the file with the key.
    pub fn credential_name(&self) -> Option<&str> {
        let file = self.credential_file.to_str().filter(|file| !file.is_empty());
        Some(self.credential_variable.as_str()).filter(|name| !name.is_empty()).or(file)
    }

    pub(super) fn parse_base_url(&self) -> Result<Url, Problem> {
        parse_base_url(self.base_url(), self.kind.base_url())
    }

    pub(in crate::providers) fn first_byte_timeout(&self) -> Duration {
        Duration::from_secs(self.first_byte_timeout_secs)
    }

    pub(in crate::providers) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_secs)
    }

    pub(in crate::providers) fn total_timeout(&self) -> Duration {
        Duration::from_secs(self.total_timeout_secs)
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_secs)
    }

    pub(super) fn breaker_open(&self) -> Duration {
        Duration::from_secs(self.breaker_open_secs)
    }

    /// Returns the timeout of requests that need no model.
    pub(super) fn request_timeout(&self) -> Duration {
        self.connect_timeout() + self.idle_timeout()
    }

    fn check_name(&self) -> Option<Problem> {
        let name = self.name.as_str();
        let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let has_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 64
            && name.chars().all(is_fine);
        let is_reserved =
            RESERVED_NAMES.contains(&name) || (name == ANTHROPIC && self.kind != Kind::Anthropic);
        let message = match (has_name, is_reserved) {
            (true, false) => return None,
            (_, true) => format!("belongs to [providers.{name}], but `{name}` is reserved"),
            (false, _) => format!("belongs to [providers.{name}], which is not a valid name"),
        };
        let fix =
            "a section with another name: a small letter, then small letters, digits, - and _";
        Some(Problem::new("kind", message, fix))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(changes: &serde_json::Value) -> Config {
        let mut config = json!({
            "kind": "openai", "base_url": EXAMPLE_URL, "dialect": "auto",
            "credential_variable": "", "credential_file": "", "window_tokens": 8192,
            "models": [{ "name": "m", "window_tokens": 4096 }], "prompt_cache_secs": 0,
            "images": "auto", "pdf": "auto", "ttl_days": 7, "connect_timeout_secs": 5, "first_byte_timeout_secs": 60,
            "idle_timeout_secs": 60, "total_timeout_secs": 600, "breaker_failures": 5,
            "breaker_open_secs": 30,
        });
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        let config: Config = serde_json::from_value(config).unwrap();
        Config { name: "local".to_owned(), ..config }
    }

    fn keys(config: &Config) -> Vec<String> {
        config.check().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(config(&json!({})).check(), []);
        let wrong = config(&json!({
            "base_url": "http://me:secret@localhost", "window_tokens": 10, "total_timeout_secs": 5,
            "credential_variable": "KEY", "credential_file": "key",
            "models": [{ "name": "m", "window_tokens": 1 }, { "name": "m", "window_tokens": 4096 }],
        }));
        let expected = [
            "base_url",
            "window_tokens",
            "total_timeout_secs",
            "models[0].window_tokens",
            "models[1].name",
            "credential_variable",
        ];
        assert_eq!(keys(&wrong), expected);
    }

    #[test]
    fn a_reserved_or_invalid_name_is_refused() {
        for name in ["claude", "ollama", "sim", "anthropic", "Local", "a.b", "1a", ""] {
            let named = Config { name: name.to_owned(), ..config(&json!({})) };
            assert_eq!(keys(&named), ["kind"], "{name}");
        }
        let named = Config { name: "openai".to_owned(), ..config(&json!({})) };
        assert_eq!(named.check(), []);
        let of_kind = config(&json!({ "kind": "anthropic" }));
        assert_eq!(Config { name: "anthropic".to_owned(), ..of_kind }.check(), []);
    }

    #[test]
    fn empty_settings_follow_the_kind() {
        let empty = json!({ "base_url": "", "window_tokens": 0 });
        let openai = config(&empty);
        assert_eq!((openai.base_url(), openai.window_tokens()), (EXAMPLE_URL, 32_768));
        assert_eq!(openai.prompt_cache(), None);
        let anthropic = Config { kind: Kind::Anthropic, ..config(&empty) };
        assert_eq!(anthropic.base_url(), "https://api.anthropic.com/v1");
        assert_eq!(anthropic.window_tokens(), 200_000);
        assert_eq!(anthropic.prompt_cache(), Some(Duration::from_secs(300)));
        assert_eq!(anthropic.check(), []);
    }

    #[test]
    fn a_model_may_have_a_window_of_its_own() {
        assert_eq!(config(&json!({})).window_tokens_of("m"), Some(4096));
        assert_eq!(config(&json!({})).window_tokens_of("m:8b"), None);
    }
}
