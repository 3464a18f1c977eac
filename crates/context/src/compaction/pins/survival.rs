//! Checks that a pin is still in a text, word for word.

use super::Pin;

/// A text prepared for many look-ups. Line breaks and runs of blanks count as one blank, because a summariser may wrap
/// a requirement; any other difference counts.
#[derive(Debug, Clone)]
pub struct Haystack(String);

impl Haystack {
    pub fn of(text: &str) -> Self {
        Self(one_blank(text))
    }

    pub fn contains_pin(&self, pin: &Pin) -> bool {
        self.contains_text(&pin.text)
    }

    pub fn contains_text(&self, text: &str) -> bool {
        let needle = one_blank(text);
        let mut from = 0;
        while let Some(offset) = self.0[from..].find(&needle) {
            let at = from + offset;
            if self.stands_alone(at, &needle) {
                return true;
            }
            from = at + self.0[at..].chars().next().map_or(1, char::len_utf8);
        }
        false
    }

    /// Returns true if the match is not part of a longer word: `12 kg` is not in `112 kg`, nor `INV-1` in `INV-17`.
    fn stands_alone(&self, at: usize, needle: &str) -> bool {
        let joins = |outer: Option<char>, inner: Option<char>| {
            outer.is_some_and(char::is_alphanumeric) && inner.is_some_and(char::is_alphanumeric)
        };
        let before = self.0[..at].chars().next_back();
        let after = self.0[at + needle.len()..].chars().next();
        !joins(before, needle.chars().next()) && !joins(after, needle.chars().next_back())
    }
}

fn one_blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::pins::{PinKind, Speaker};

    fn survives(text: &str, pin: &str) -> bool {
        Haystack::of(text).contains_pin(&Pin {
            kind: PinKind::Identifier,
            text: pin.to_owned(),
            voice: Speaker::Person,
        })
    }

    #[test]
    fn a_pin_must_stand_alone() {
        assert!(survives("weighs 12 kg.", "12 kg"));
        assert!(survives("weighs 112 kg, not 12 kg", "12 kg"));
        assert!(!survives("weighs 112 kg", "12 kg"));
        assert!(!survives("INV-17", "INV-1"));
        assert!(survives("two\n  words", "two words"));
        assert!(!survives("inv-1", "INV-1"));
    }
}
