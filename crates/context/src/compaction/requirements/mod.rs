//! Finds sentences that look like standing requirements, in English and German, by rules and without a model.
//!
//! Rules cannot understand a sentence; they rank it. A marked line comes first, then the words of rules ("must",
//! "never", "darf nicht"), then quotes of a summariser, then hints ("our readers", "bei uns"). A result is a part of
//! the text, letter by letter.

mod marks;
mod revocations;
mod rules;
mod sentences;
mod words;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::revocations::{Revocation, RevokedSubject, revocations};
pub(super) use marks::text_after_mark;
use sentences::sentences;

/// Length at which requirements are cut: a longer rule is a document.
pub(super) const REQUIREMENT_MAX_CHARS: usize = 400;

/// The strength of a standing requirement, the clearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// A person marked the line.
    Mark,
    /// It has the words of a rule.
    Rule,
    /// A summariser took it for a requirement.
    Quote,
    /// It has several signs of a preference or of a fact about the readers; or it is a rule in a long text, which was probably pasted.
    Hint,
    /// It has one such sign.
    Trace,
}

/// A part of a text that looks like a requirement: a sentence, or several in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement<'a> {
    pub text: &'a str,
    pub strength: Strength,
}

/// Size from which a text counts as pasted: rules in it are more often a part of the material.
const PASTE_MIN_BYTES: usize = 2_000;

/// Finds all requirements of a text, in order. Neighbours of the same strength stay together as long as they are short.
pub fn find(text: &str) -> Vec<Requirement<'_>> {
    let mut found: Vec<(Range<usize>, Strength)> = Vec::new();
    let is_pasted = text.len() >= PASTE_MIN_BYTES;
    for range in sentences(text) {
        let strength = match strength(&text[range.clone()]) {
            Some(Strength::Rule) if is_pasted => Strength::Hint,
            Some(strength) => strength,
            None => continue,
        };
        match found.last_mut() {
            Some((last, before)) if *before == strength && is_continued(text, last, &range) => {
                last.end = range.end;
            }
            _ => found.push((range, strength)),
        }
    }
    let requirement = |(range, strength): (Range<usize>, _)| Requirement {
        text: shortened(&text[range]),
        strength,
    };
    found.into_iter().map(requirement).collect()
}

/// Returns the strength of a sentence, or `None` if it is not a standing requirement.
pub fn strength(sentence: &str) -> Option<Strength> {
    if text_after_mark(sentence).is_some() {
        return Some(Strength::Mark);
    }
    let words = words::normalised(sentence);
    let found = rules::strength(&words)?;
    // A question usually asks for an answer, but may be a polite rule.
    Some(if sentence.ends_with('?') { found.max(Strength::Hint) } else { found })
}

/// Returns true if both are in one line and short enough together to be one requirement.
fn is_continued(text: &str, last: &Range<usize>, next: &Range<usize>) -> bool {
    !text[last.end..next.start].contains('\n')
        && next.end - last.start <= REQUIREMENT_MAX_CHARS
        && text[last.end..next.start].trim().is_empty()
}

/// Cuts a text that is too long at a blank.
fn shortened(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(REQUIREMENT_MAX_CHARS) else { return text };
    text[..end].rfind(char::is_whitespace).map_or(&text[..end], |blank| text[..blank].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn requirements_are_found_inside_a_tasks_text() {
        let text = "Write the caption for reel 7. You must always mention the red lamp. It was \
                    taken on 4 March.\n- Unsere Leser sind am Handy unterwegs.\n\nThanks, Ann";
        let expected =
            ["You must always mention the red lamp.", "Unsere Leser sind am Handy unterwegs."];
        assert_eq!(texts(text), expected);
    }

    #[test]
    fn consecutive_sentences_stay_together() {
        let text = "We don't do discounts, we do gifts. Never call it cheap.\nWrite part 2.";
        assert_eq!(texts(text), ["We don't do discounts, we do gifts. Never call it cheap."]);
    }

    #[test]
    fn a_mark_counts_more_than_a_rule_and_a_rule_more_than_a_hint() {
        let found = |text| find(text)[0].strength;
        assert_eq!(found("PIN: blue"), Strength::Mark);
        assert_eq!(found("It must be blue."), Strength::Rule);
        assert_eq!(found("Our readers are on phones."), Strength::Hint);
        assert_eq!(found("It is in the tone of the series."), Strength::Trace);
        assert!(Strength::Mark < Strength::Rule && Strength::Rule < Strength::Hint);
    }

    #[test]
    fn a_sentence_without_an_end_is_cut_at_a_space() {
        let text = format!("You must {}", "say it again and ".repeat(100));
        let [found] = texts(&text)[..] else { panic!("no requirement was found") };
        assert!(found.chars().count() <= REQUIREMENT_MAX_CHARS && text.starts_with(found));
    }
}
