//! Checks of texts before they are stored.

use std::fmt::Display;

use super::class::{Class, Classify, Kind, NUL_IN_TEXT};

/// Placeholder for an erased text.
pub const ERASED: &str = "(erased)";

/// The reason why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the {what} is empty: write what it should say")]
    Empty { what: &'static str },
    #[error(
        "the {what} has {bytes} bytes, at most {limit_bytes} are allowed: shorten it, or put long material where the agent can look it up"
    )]
    TooLong { what: &'static str, bytes: usize, limit_bytes: usize },
    #[error(
        "the {what} has a NUL character at byte {at}, which the database cannot store: remove it"
    )]
    Nul { what: &'static str, at: usize },
    #[error("the search text has no words: write at least one")]
    NoWords,
}

/// Formats a number of bytes: 812 B, 41.8 kB, 1.2 MB.
pub fn bytes(n: i64) -> String {
    match n.abs() {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// Formats a number with its noun: `1 task`, `2 tasks`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str, many: &str) -> String {
    let noun = if n == N::from(1) { one } else { many };
    format!("{n} {noun}")
}

/// Formats the number of things that were read. `is_cut`: there may be more of them, as in `20 or more tasks`.
pub fn count_read<N: Copy + Display + PartialEq + From<u8>>(
    n: N,
    is_cut: bool,
    one: &str,
    many: &str,
) -> String {
    match is_cut {
        true => format!("{n} or more {many}"),
        false => count(n, one, many),
    }
}

/// Quotes a word of a command for a shell, unless it is a plain one. A backtick would end the command in a message.
pub fn quote_for_shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./@:".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Error {
    pub const EMPTY: Class = Class::of(Kind::Invalid, "empty_text");
    pub const TOO_LONG: Class = Class::of(Kind::TooLarge, "text_too_long");
    pub const NO_WORDS: Class = Class::of(Kind::Invalid, "no_words");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Empty { .. } => Self::EMPTY,
            Self::TooLong { .. } => Self::TOO_LONG,
            Self::Nul { .. } => NUL_IN_TEXT,
            Self::NoWords => Self::NO_WORDS,
        }
    }
}

/// Checks a text that must not be empty.
pub fn check(what: &'static str, text: &str, limit_bytes: usize) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Empty { what });
    }
    check_optional(what, text, limit_bytes)
}

/// Checks a text that may be empty.
pub fn check_optional(what: &'static str, text: &str, limit_bytes: usize) -> Result<(), Error> {
    if text.len() > limit_bytes {
        return Err(Error::TooLong { what, bytes: text.len(), limit_bytes });
    }
    match text.find('\0') {
        Some(at) => Err(Error::Nul { what, at }),
        None => Ok(()),
    }
}

/// Replaces NUL in a model's text, which Postgres cannot store. A model cannot be asked to remove it.
pub fn make_storable(text: String) -> String {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}"),
        false => text,
    }
}

/// Replaces NUL in every string of a JSON value.
pub fn make_json_storable(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = make_storable(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(make_json_storable),
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            fields.extend(taken.into_iter().map(|(key, mut value)| {
                make_json_storable(&mut value);
                (make_storable(key), value)
            }));
        }
        Value::Number(number) => make_number_storable(number),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Writes a number as Postgres returns it: `1e18` as an integer, and -0.0 without its sign. Otherwise a message would be sent in one way
/// before it is stored, and in another one after it.
fn make_number_storable(number: &mut serde_json::Number) {
    /// Floats from here on are written with an exponent, and integers up to here are not.
    const EXPONENT: f64 = 1e16;
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return };
    let stored = match float {
        0.0 => serde_json::Number::from_f64(0.0),
        EXPONENT..=1.8e19 => Some((float as u64).into()),
        -9.2e18..=-1e16 => Some((float as i64).into()),
        _ => None,
    };
    if let Some(stored) = stored {
        *number = stored;
    }
}

/// Splits an explanation into its first sentence and the details that follow.
pub fn first_sentence(text: &str) -> (&str, &str) {
    let is_end = |at: usize| {
        let is_code = text[..at].matches('`').count() % 2 == 1;
        let next = text[at + 2..].chars().next();
        !is_code && next.is_some_and(|next| !next.is_lowercase())
    };
    let end = text.match_indices(". ").map(|(at, _)| at).find(|at| is_end(*at));
    end.map_or((text, ""), |at| (&text[..=at], &text[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_and_one_decimal() {
        assert_eq!([bytes(812), bytes(41_800), bytes(1_200_000)], ["812 B", "41.8 kB", "1.2 MB"]);
    }

    #[test]
    fn numbers_are_written_as_postgres_returns_them() {
        let mut value = serde_json::json!([1e18, -1e17, -0.0, 0.1, 1e300, 5, 2.0]);
        make_json_storable(&mut value);
        assert_eq!(
            value.to_string(),
            "[1000000000000000000,-100000000000000000,0.0,0.1,1e+300,5,2.0]"
        );
    }

    #[test]
    fn one_thing_has_no_plural() {
        let counts = [0, 1, 2].map(|n| count(n, "task is open", "tasks are open"));
        assert_eq!(counts, ["0 tasks are open", "1 task is open", "2 tasks are open"]);
        assert_eq!(count_read(1, false, "task is open", "tasks are open"), "1 task is open");
        assert_eq!(
            count_read(1, true, "task is open", "tasks are open"),
            "1 or more tasks are open"
        );
    }

    #[test]
    fn an_explanation_begins_with_its_first_sentence() {
        let of = first_sentence;
        assert_eq!(of("It waits. It used up no attempt."), ("It waits.", "It used up no attempt."));
        assert_eq!(of("It is paused."), ("It is paused.", ""));
        assert_eq!(
            of("It waits for `a. B`: see e.g. that."),
            ("It waits for `a. B`: see e.g. that.", "")
        );
        assert_eq!(of("It waits. 1 job is before it."), ("It waits.", "1 job is before it."));
    }
}
