//! Parameters: named values of a campaign or a task that its calls contain, such as `agent_mode: plan`.

use serde_json::{Map, Value};

use super::{
    class::{Class, Classify, Kind},
    limits::{LimitEffect::Refused, LimitEntry},
};

pub type Parameters = Map<String, Value>;

/// Maximum number of parameters of a campaign or a task.
const MAX_PARAMETERS: usize = 32;
const MAX_NAME_CHARS: usize = 63;
/// Maximum size as JSON. They are in every call.
const MAX_BYTES: usize = 4096;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "parameters of a campaign, and of a task",
        MAX_PARAMETERS as u64,
        Refused(Error::INVALID.code),
    ),
    LimitEntry::fixed(
        "characters of the name of a parameter",
        MAX_NAME_CHARS as u64,
        Refused(Error::INVALID.code),
    ),
    LimitEntry::fixed(
        "bytes of all parameters of a campaign, or of a task, as JSON",
        MAX_BYTES as u64,
        Refused(Error::INVALID.code),
    ),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "invalid name of a parameter `{0}`: use at most {MAX_NAME_CHARS} lower-case letters, digits and _, with a letter first, for example `agent_mode`"
    )]
    Name(String),
    #[error("{0} parameters are too many: give at most {MAX_PARAMETERS}")]
    TooMany(usize),
    #[error(
        "the parameters have {0} bytes as JSON, at most {MAX_BYTES} are allowed: put long texts into the prompt, the brief or a record"
    )]
    TooLong(usize),
    #[error("the parameter `{0}` is null: leave it out")]
    Null(String),
}

impl Error {
    pub const INVALID: Class = Class::of(Kind::Invalid, "bad_parameters");
}

impl Classify for Error {
    fn class(&self) -> Class {
        Self::INVALID
    }
}

pub fn check(parameters: &Parameters) -> Result<(), Error> {
    if parameters.len() > MAX_PARAMETERS {
        return Err(Error::TooMany(parameters.len()));
    }
    for (name, value) in parameters {
        if !is_name(name) {
            return Err(Error::Name(name.chars().take(MAX_NAME_CHARS).collect()));
        }
        if value.is_null() {
            return Err(Error::Null(name.clone()));
        }
    }
    if parameters.is_empty() {
        return Ok(());
    }
    match serde_json::to_string(parameters).map_or(0, |json| json.len()) {
        0..=MAX_BYTES => Ok(()),
        n_bytes => Err(Error::TooLong(n_bytes)),
    }
}

/// Changes parameters by name; null removes one.
pub fn change(parameters: &mut Parameters, changes: &Parameters) {
    for (name, value) in changes {
        match value {
            Value::Null => _ = parameters.remove(name),
            value => _ = parameters.insert(name.clone(), value.clone()),
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= MAX_NAME_CHARS
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters(value: &Value) -> Parameters {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn parameters_have_short_names_and_a_small_size() {
        let checked = |value: Value| check(&parameters(&value));
        assert_eq!(checked(json!({ "agent_mode": "plan", "deep_thinking": true })), Ok(()));
        assert_eq!(checked(json!({ "Mode": 1 })), Err(Error::Name("Mode".to_owned())));
        assert_eq!(checked(json!({ "": 1 })), Err(Error::Name(String::new())));
        assert_eq!(checked(json!({ "mode": null })), Err(Error::Null("mode".to_owned())));
        let long = checked(json!({ "mode": "x".repeat(4096) }));
        assert_eq!(long, Err(Error::TooLong(4107)));
        let many: Parameters = (0..33).map(|n| (format!("p{n}"), json!(n))).collect();
        assert_eq!(check(&many), Err(Error::TooMany(33)));
    }

    #[test]
    fn changes_replace_and_remove_by_name() {
        let mut all = parameters(&json!({ "a": 1, "b": { "c": 2 } }));
        change(&mut all, &parameters(&json!({ "a": null, "b": { "d": 3 }, "e": 4, "f": null })));
        assert_eq!(Value::Object(all), json!({ "b": { "d": 3 }, "e": 4 }));
    }
}
