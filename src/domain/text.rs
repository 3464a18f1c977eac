//! What texts from outside have to be before they are stored.

use super::class::{Class, Classify, Kind, NUL_IN_TEXT};

/// Stands where a text was.
pub const ERASED: &str = "(erased)";

/// The longest question to a search.
pub const QUESTION_MAX_BYTES: usize = 1000;

/// Why a text is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the {what} is empty: write what it should say")]
    Empty { what: &'static str },
    #[error(
        "the {what} has {bytes} bytes, {limit_bytes} are allowed: shorten it, or put long material where the agent \
         can look it up"
    )]
    TooLong { what: &'static str, bytes: usize, limit_bytes: usize },
    #[error(
        "the {what} has a NUL character at byte {at}, which the database cannot store: remove it"
    )]
    Nul { what: &'static str, at: usize },
}

impl Error {
    pub const EMPTY: Class = Class::of(Kind::Invalid, "empty_text");
    pub const TOO_LONG: Class = Class::of(Kind::TooLarge, "text_too_long");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Empty { .. } => Self::EMPTY,
            Self::TooLong { .. } => Self::TOO_LONG,
            Self::Nul { .. } => NUL_IN_TEXT,
        }
    }
}

/// For texts that must say something.
pub fn check(what: &'static str, text: &str, limit_bytes: usize) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Empty { what });
    }
    check_optional(what, text, limit_bytes)
}

/// For texts that may be empty.
pub fn check_optional(what: &'static str, text: &str, limit_bytes: usize) -> Result<(), Error> {
    if text.len() > limit_bytes {
        return Err(Error::TooLong { what, bytes: text.len(), limit_bytes });
    }
    match text.find('\0') {
        Some(at) => Err(Error::Nul { what, at }),
        None => Ok(()),
    }
}

/// Whether a question to a search says what is to be found, in each of its alternatives, and not only what is not: of that there may be
/// any amount, and all of it would be ranked.
pub fn asks_for_a_word(question: &str) -> bool {
    let parts = question.split('"').enumerate();
    let unquoted: String =
        parts.map(|(at, part)| if at % 2 == 1 { "quoted" } else { part }).collect();
    let words: Vec<&str> = unquoted.split_whitespace().collect();
    let alternatives = words.split(|word| word.eq_ignore_ascii_case("or"));
    let is_wanted = |word: &&str| !word.starts_with('-') && word.contains(char::is_alphanumeric);
    let mut said = alternatives.filter(|words| !words.is_empty()).peekable();
    said.peek().is_some() && said.all(|words| words.iter().any(is_wanted))
}

/// Whether a question to a search says of a word that it must not be there. To look for some of its words would find that, too.
pub fn forbids_a_word(question: &str) -> bool {
    question.split_whitespace().any(|word| word.starts_with('-'))
}

/// Whether a question to a search is nothing but words: an index may look for some of them first, and what has others of the same meaning
/// is no wrong answer.
pub fn is_plain(question: &str) -> bool {
    let is_operator =
        |word: &str| word.starts_with('-') || word.contains('"') || word.eq_ignore_ascii_case("or");
    !question.split_whitespace().any(is_operator)
}

/// A text of a model as Postgres can hold it: nobody is there whom one could ask to remove a NUL.
pub fn storable(text: String) -> String {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}"),
        false => text,
    }
}

/// As [`storable`], for every string inside a JSON value.
pub fn storable_json(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = storable(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(storable_json),
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            fields.extend(taken.into_iter().map(|(key, mut value)| {
                storable_json(&mut value);
                (storable(key), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_only_says_what_is_not_wanted_asks_for_nothing() {
        for question in ["bergen", "bergen -rain", "bergen or porto", "\"a or -b\"", "or bergen"] {
            assert!(asks_for_a_word(question), "{question}");
        }
        for question in ["-bergen", "-bergen -rain", "bergen or -porto", "-\"a b\"", "…", "or", ""]
        {
            assert!(!asks_for_a_word(question), "{question}");
        }
    }
}
