//! Checks of answers.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::domain::result_schemas;

/// A condition on an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    Contains(String),
    NotContains(String),
    Regex(String),
    /// The answer is JSON that matches this schema, with or without a Markdown fence around it.
    JsonSchema(Value),
    MinWords(usize),
    MaxWords(usize),
    MaxChars(usize),
    /// A rubric: the judge says if the answer meets it.
    Judge(String),
}

impl Check {
    /// Returns the rubric of a check that needs the judge.
    pub fn rubric(&self) -> Option<&str> {
        match self {
            Self::Judge(rubric) => Some(rubric),
            _ => None,
        }
    }

    /// Checks the check itself.
    pub(super) fn validate(&self) -> Result<(), String> {
        match self {
            Self::Contains(text) | Self::NotContains(text) | Self::Judge(text)
                if text.trim().is_empty() =>
            {
                Err("a check has an empty text".to_owned())
            }
            Self::Regex(pattern) => compile(pattern).map(|_| ()),
            Self::JsonSchema(schema) => {
                result_schemas::check(schema).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Returns the reason why an answer fails, if it does. The judge's checks are decided elsewhere.
    pub fn fault(&self, answer: &str) -> Option<String> {
        let n_words = || answer.split_whitespace().count();
        match self {
            Self::Contains(text) => {
                (!answer.contains(text)).then(|| format!("does not contain `{text}`"))
            }
            Self::NotContains(text) => answer.contains(text).then(|| format!("contains `{text}`")),
            Self::Regex(pattern) => match compile(pattern) {
                Ok(regex) => {
                    (!regex.is_match(answer)).then(|| format!("does not match /{pattern}/"))
                }
                Err(problem) => Some(problem),
            },
            Self::JsonSchema(schema) => result_schemas::read_answer(schema, answer).err(),
            Self::MinWords(least) => {
                let n = n_words();
                (n < *least).then(|| format!("has {n} words, at least {least} are required"))
            }
            Self::MaxWords(most) => {
                let n = n_words();
                (n > *most).then(|| format!("has {n} words, at most {most} are allowed"))
            }
            Self::MaxChars(most) => {
                let n = answer.chars().count();
                (n > *most).then(|| format!("has {n} characters, at most {most} are allowed"))
            }
            Self::Judge(_) => None,
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| format!("the regex /{pattern}/ is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_check_passes_and_fails() {
        let schema = json!({ "type": "object", "required": ["title"] });
        for (check, good, bad) in [
            (Check::Contains("LH-1".into()), "It is LH-1.", "It is LH-2."),
            (Check::NotContains("€".into()), "Free.", "Only 3 €."),
            (Check::Regex("^[A-Z].*\\.$".into()), "One line.", "one line"),
            (Check::MinWords(3), "one two three", "one two"),
            (Check::MaxWords(2), "one two", "one two three"),
            (Check::MaxChars(3), "äöü", "äöüß"),
            (Check::JsonSchema(schema), "```json\n{\"title\": 1}\n```", "{\"name\": 1}"),
        ] {
            assert_eq!(check.validate(), Ok(()), "{check:?}");
            assert_eq!(check.fault(good), None, "{check:?}");
            assert!(check.fault(bad).is_some(), "{check:?}");
        }
        let text = Check::JsonSchema(json!({})).fault("Sure!").unwrap();
        assert!(text.starts_with("the answer is not JSON"), "{text}");
    }

    #[test]
    fn a_check_that_cannot_work_is_refused() {
        for check in [
            Check::Regex("(".into()),
            Check::JsonSchema(json!({ "type": "objekt" })),
            Check::Contains(" ".into()),
        ] {
            assert!(check.validate().is_err(), "{check:?}");
        }
    }
}
