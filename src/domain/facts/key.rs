//! Rules for attributes and texts of facts, and the keys by which two of them are the same.

use super::Error;

pub const ATTRIBUTE_MAX_CHARS: usize = 100;
pub const TEXT_MAX_CHARS: usize = 400;

/// Minimum number of words in a sentence. A shorter text depends on its attribute: `Porto` may be a home or a birthplace.
const SENTENCE_MIN_WORDS: usize = 3;

/// Normalises a text: removes case, repeated blanks and marks without meaning. Texts with the same key say the same. `C++`, `-5` and `0.5`
/// keep their marks.
pub fn key(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut key = String::with_capacity(text.len());
    let mut is_behind_gap = false;
    for (at, char) in chars.iter().enumerate() {
        if !is_meaningful(&chars, at) {
            is_behind_gap = true;
            continue;
        }
        if is_behind_gap && !key.is_empty() {
            key.push(' ');
        }
        is_behind_gap = false;
        match char {
            '−' => key.push('-'),
            char => key.extend(char.to_lowercase()),
        }
    }
    key
}

/// Returns true if a text means the same under every attribute: `Lives in Porto.` does, `Porto.` does not.
pub(super) fn is_sentence(text: &str) -> bool {
    key(text).split(' ').count() >= SENTENCE_MIN_WORDS
}

fn is_meaningful(chars: &[char], at: usize) -> bool {
    let char = chars[at];
    let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
    let after = chars.get(at + 1).copied();
    let is_number = |char: Option<char>| char.is_some_and(char::is_numeric);
    let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    match char {
        // The languages `C++` and `C#`, the blood type `A+`, `#1`.
        '+' | '#' => {
            let head = chars[..at].iter().rev().find(|char| !matches!(char, '+' | '#'));
            is_word(head.copied()) || is_number(after)
        }
        // `-5` and the blood type `A-`, but not a hyphen.
        '-' | '−' if is_word(before) => !is_word(after) && after != Some('-'),
        '-' | '−' => is_number(after),
        '.' | ',' => is_number(before) && is_number(after),
        _ => char.is_alphanumeric(),
    }
}

/// Checks that both are single lines with a word in them: they appear in lists and in prompts.
pub(super) fn check(attribute: &str, text: &str) -> Result<(), Error> {
    check_line("attribute", attribute, ATTRIBUTE_MAX_CHARS)?;
    check_line("text of a fact", text, TEXT_MAX_CHARS)
}

fn check_line(what: &'static str, line: &str, max_chars: usize) -> Result<(), Error> {
    let problem = match line {
        _ if key(line).is_empty() => "is empty: write at least one word",
        _ if line.chars().count() > max_chars => {
            "is too long: one short line, the text of at most 400 characters"
        }
        _ if line.chars().any(char::is_control) => "has control characters: write one line of text",
        _ if line.trim() != line => "begins or ends with a space: remove it",
        _ => return Ok(()),
    };
    Err(Error::Words { what, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_case_punctuation_and_spaces_are_equal() {
        for same in ["Eats no meat.", "eats  NO meat", "«Eats», no meat!"] {
            assert_eq!(key(same), "eats no meat");
        }
        assert_ne!(key("Eats no meat."), key("Eats meat."));
        assert_eq!(key("Straße 7, Köln"), "straße 7 köln");
        assert_eq!(key("—!"), "");
        assert_eq!(key("+ # - ++ --"), "");
        assert_eq!(key("Well-known, 9-5 — and so on -"), "well known 9 5 and so on");
    }

    #[test]
    fn significant_marks_distinguish_facts() {
        let keys = [
            "C", "C++", "C#", "5", "-5", "A+", "A-", "A", "0.5", "0,5", "05", "1.5 %", "15", "#1",
            "1",
        ];
        for (at, text) in keys.iter().enumerate() {
            for other in &keys[at + 1..] {
                assert_ne!(key(text), key(other), "{text} {other}");
            }
        }
        assert_eq!(key("Writes C++."), key("writes c++"));
        assert_eq!(key("−5 °C"), key("-5 C"));
        assert!(is_sentence("Lives in Porto.") && !is_sentence("Porto, Portugal."));
    }

    #[test]
    fn a_fact_is_one_line_with_content() {
        assert!(check("Diet", "Eats no meat.").is_ok());
        for (attribute, text) in [
            ("", "Eats."),
            ("Diet", "…"),
            ("Diet", "Eats.\nAlso drinks."),
            ("Diet", " Eats."),
            ("Diet", &"a ".repeat(300)),
            (&"a".repeat(101), "Eats."),
        ] {
            assert!(check(attribute, text).is_err(), "{attribute:?} {text:?}");
        }
    }
}
