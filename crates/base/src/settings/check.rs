//! Types, cross-checks and suggestions.

use std::path::Path;

use config::{Value, ValueKind};
use serde::{Deserialize, Deserializer, de::IntoDeserializer};

use super::{Layers, Problem, Problems};

const YEAR_SECS: u64 = 365 * 24 * 60 * 60;

/// Reports problems of a section that its types cannot express: pairs that exclude each other, numbers out of range.
pub struct Checks<'a> {
    layers: &'a Layers,
    problems: &'a mut Problems,
}

impl<'a> Checks<'a> {
    pub fn new(layers: &'a Layers, problems: &'a mut Problems) -> Self {
        Self { layers, problems }
    }

    pub fn fail(&mut self, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(Problem {
            key: key.to_owned(),
            origin: self.layers.origin(key),
            message: message.into(),
            fix: fix.into(),
        });
    }

    /// Reports two values that exclude each other: once, at the one that is not a default, and not at all while one of
    /// them has another problem.
    pub fn fail_pair(
        &mut self,
        keys: [&str; 2],
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        if keys.iter().any(|key| self.problems.0.iter().any(|problem| problem.key == *key)) {
            return;
        }
        let set = keys.into_iter().find(|key| !self.layers.is_default(key));
        self.fail(set.unwrap_or(keys[0]), message, fix);
    }

    /// Checks a number of seconds. A year is the longest useful wait, and far from where adding to a point in time overflows.
    pub fn secs(&mut self, key: &str, value: u64, least: u64) {
        if !(least..=YEAR_SECS).contains(&value) {
            self.fail(
                key,
                format!("is {value}, but must be from {least} to {YEAR_SECS} (a year)"),
                least.max(1).to_string(),
            );
        }
    }

    /// Checks a folder of files for which built-in ones exist. Only the default may be missing: a mistyped folder would otherwise select the
    /// built-in files.
    pub fn folder(&mut self, key: &str, folder: &Path) {
        const FIX: &str = "the path of an existing folder; without this setting, the built-in files are used if the default folder is missing";
        if folder.as_os_str().is_empty() {
            self.fail(key, "is empty", FIX);
        } else if !self.layers.has_default_value(key) && matches!(folder.try_exists(), Ok(false)) {
            let message = format!("the folder does not exist: {}", folder.display());
            self.fail(key, message, FIX);
        }
    }

    /// Checks the least value of a number. Most numbers make no sense at 0.
    pub fn at_least(&mut self, key: &str, value: u64, least: u64) {
        if value < least {
            self.fail(key, format!("is {value}, but must be at least {least}"), least.to_string());
        }
    }
}

/// Reads a key whose empty string means "not set", because TOML has no null.
pub fn empty_as_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    T::deserialize(text.into_deserializer()).map(Some)
}

/// Finds the known key that an unknown one was probably meant to be.
pub(super) fn nearest<'a>(
    key: &str,
    known: impl Iterator<Item = &'a String>,
) -> Option<&'a String> {
    let similarity = |name: &str| {
        let leaf = |k: &str| k.rsplit('.').next().unwrap_or_default().to_owned();
        // The right key in the wrong section is as likely as a typo.
        let by_leaf = strsim::jaro_winkler(&leaf(key), &leaf(name)) * 0.95;
        strsim::jaro_winkler(key, name).max(by_leaf)
    };
    known
        .map(|name| (similarity(name), name))
        .filter(|(score, _)| *score > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Returns a value as TOML text.
pub fn toml(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => format!("{text:?}"),
        _ => value.to_string(),
    }
}
