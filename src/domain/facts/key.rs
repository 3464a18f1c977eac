//! What an attribute and a text have to be, and by what two of them are the same.

use super::Error;

pub const ATTRIBUTE_MAX_CHARS: usize = 100;
pub const TEXT_MAX_CHARS: usize = 400;

/// Without case, punctuation and repeated blanks: what differs only in these says the same.
pub fn key(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(word.chars().flat_map(char::to_lowercase));
    }
    key
}

/// One line each, that says something: they stand in lists, and in what agents are told.
pub(super) fn check(attribute: &str, text: &str) -> Result<(), Error> {
    check_line("attribute", attribute, ATTRIBUTE_MAX_CHARS)?;
    check_line("text of a fact", text, TEXT_MAX_CHARS)
}

fn check_line(what: &'static str, line: &str, max_chars: usize) -> Result<(), Error> {
    let problem = match line {
        _ if key(line).is_empty() => "has no word: say something",
        _ if line.chars().count() > max_chars => {
            "is too long: one short line, the text of at most 400 characters"
        }
        _ if line.chars().any(char::is_control) => "has control characters: write one line of text",
        _ if line.trim() != line => "begins or ends with a blank: leave it out",
        _ => return Ok(()),
    };
    Err(Error::Words { what, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_case_marks_and_blanks_is_the_same() {
        for same in ["Eats no meat.", "eats  NO meat", "«Eats», no meat!"] {
            assert_eq!(key(same), "eats no meat");
        }
        assert_ne!(key("Eats no meat."), key("Eats meat."));
        assert_eq!(key("Straße 7, Köln"), "straße 7 köln");
        assert_eq!(key("—!"), "");
    }

    #[test]
    fn a_fact_is_one_line_that_says_something() {
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
