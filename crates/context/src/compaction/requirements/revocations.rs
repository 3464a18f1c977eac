//! Statements that revoke an earlier requirement, in English and German.
//!
//! Strict on purpose. A requirement that is wrongly kept precedes the later statement, which wins for a reader of both.
//! One that is wrongly dropped is lost.

use std::collections::HashSet;

use super::{sentences::sentences, words::normalised};

/// Phrases of revocations. They are compared as the lists in `rules` are.
const PHRASES: &[&str] = &[
    " forget ",
    " no longer ",
    " not needed any",
    " not necessary any",
    " not required any",
    " don't need ",
    " anymore ",
    " any more ",
    " ignore ",
    " scrap the ",
    " drop the ",
    " never mind ",
    " is off the table ",
    " allowed again ",
    " fine again ",
    " okay again ",
    " ok again ",
    " may again ",
    " can again ",
    " now allowed ",
    " is lifted ",
    " is withdrawn ",
    " vergesst ",
    " vergiss ",
    " vergessen sie ",
    " nicht mehr ",
    " entfällt ",
    " entfallen ",
    " hinfällig ",
    " erledigt ",
    " aufgehoben ",
    " wieder erlaubt ",
    " wieder in ordnung ",
    " dürft wieder ",
    " dürfen wieder ",
    " könnt ihr weglassen ",
    " streicht die regel ",
];

/// Phrases that look like a revocation and ask for the opposite.
const REMINDERS: &[&str] =
    &[" don't forget ", " do not forget ", " never forget ", " not forget ", " let's not forget "];

/// Words that say nothing about the subject.
const EMPTY_WORDS: &[&str] = &[
    "a",
    "about",
    "again",
    "all",
    "allowed",
    "also",
    "always",
    "am",
    "an",
    "and",
    "any",
    "anymore",
    "apply",
    "applies",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "do",
    "does",
    "doesn't",
    "don't",
    "drop",
    "each",
    "every",
    "fine",
    "for",
    "forget",
    "from",
    "has",
    "have",
    "hold",
    "holds",
    "i",
    "ignore",
    "in",
    "is",
    "it",
    "its",
    "it's",
    "lifted",
    "longer",
    "may",
    "mind",
    "more",
    "must",
    "necessary",
    "need",
    "needed",
    "needs",
    "never",
    "no",
    "not",
    "now",
    "of",
    "off",
    "ok",
    "okay",
    "on",
    "or",
    "our",
    "please",
    "required",
    "requirement",
    "rule",
    "said",
    "say",
    "scrap",
    "shall",
    "should",
    "so",
    "still",
    "table",
    "that",
    "the",
    "their",
    "them",
    "there",
    "this",
    "thing",
    "to",
    "use",
    "using",
    "valid",
    "was",
    "we",
    "were",
    "what",
    "will",
    "with",
    "withdrawn",
    "you",
    "your",
    "aber",
    "alle",
    "auch",
    "auf",
    "aufgehoben",
    "aus",
    "bei",
    "bitte",
    "brauchen",
    "braucht",
    "da",
    "das",
    "dass",
    "dem",
    "den",
    "der",
    "des",
    "die",
    "dies",
    "dürfen",
    "dürft",
    "ein",
    "eine",
    "einem",
    "einen",
    "einer",
    "entfallen",
    "entfällt",
    "er",
    "erforderlich",
    "erlaubt",
    "erledigt",
    "es",
    "für",
    "gelten",
    "gilt",
    "hat",
    "hinfällig",
    "ich",
    "ihr",
    "im",
    "immer",
    "in",
    "ist",
    "jede",
    "jedem",
    "jeden",
    "jeder",
    "jedes",
    "jetzt",
    "kein",
    "keine",
    "keinen",
    "können",
    "könnt",
    "man",
    "mehr",
    "mit",
    "muss",
    "müssen",
    "müsst",
    "nicht",
    "nie",
    "niemals",
    "nötig",
    "oder",
    "ordnung",
    "regel",
    "sein",
    "sich",
    "sie",
    "sind",
    "soll",
    "sollen",
    "streicht",
    "und",
    "uns",
    "unser",
    "unsere",
    "vergessen",
    "vergesst",
    "vergiss",
    "verwenden",
    "von",
    "vor",
    "weglassen",
    "werden",
    "wieder",
    "wir",
    "wird",
    "zu",
    "zum",
    "zur",
    "über",
];

/// A statement that something no longer applies, as the words of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation(RevokedSubject);

/// The words that describe the subject of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedSubject(HashSet<String>);

/// Finds all revocations of a text.
pub fn revocations(text: &str) -> Vec<Revocation> {
    sentences(text).into_iter().filter_map(|range| revocation(&text[range])).collect()
}

impl Revocation {
    /// Returns true if all words of the subject are in the requirement, and make up a third of it.
    pub fn takes_back(&self, requirement: &RevokedSubject) -> bool {
        let (Self(RevokedSubject(own)), RevokedSubject(asked)) = (self, requirement);
        own.is_subset(asked) && own.len() * 3 >= asked.len()
    }
}

impl RevokedSubject {
    pub fn of(text: &str) -> Self {
        let words = normalised(text);
        let words = words.split_whitespace().filter(|word| !EMPTY_WORDS.contains(word));
        Self(words.map(stem).collect())
    }
}

fn revocation(sentence: &str) -> Option<Revocation> {
    let words = normalised(sentence);
    let is_reminder = REMINDERS.iter().any(|phrase| words.contains(phrase))
        || (words.contains(" vergesst ")
            || words.contains(" vergiss ")
            || words.contains(" vergessen "))
            && words.contains(" nicht ")
            && !words.contains(" nicht mehr ");
    if is_reminder || !has_phrase(&words) {
        return None;
    }
    // The clause with the phrase names the subject. If it has no words of its own, the first clause that has some does.
    let clauses = || sentence.split([',', ':', ';', '–']);
    let own = clauses().find(|clause| has_phrase(&normalised(clause)));
    let matters = own.into_iter().chain(clauses()).map(RevokedSubject::of);
    matters.into_iter().find(|RevokedSubject(words)| !words.is_empty()).map(Revocation)
}

fn has_phrase(words: &str) -> bool {
    PHRASES.iter().any(|phrase| words.contains(phrase))
}

/// Returns the stem of a word: `rote`, `roten` and `rotes` are one word, and so are `lamp` and `lamps`.
fn stem(word: &str) -> String {
    let endings = ["en", "er", "es", "em", "e", "n", "s"];
    let is_long = |bare: &&str| bare.chars().count() >= 3;
    endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(is_long))
        .unwrap_or(word)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revokes(later: &str, requirement: &str) -> bool {
        let matter = RevokedSubject::of(requirement);
        revocations(later).iter().any(|revocation| revocation.takes_back(&matter))
    }

    #[test]
    fn a_later_statement_revokes_a_requirement() {
        for (later, requirement) in [
            ("Forget the red lamp.", "You must always mention the red lamp."),
            ("The red lamp is no longer needed.", "You must always mention the red lamp."),
            (
                "Please forget about the red lamps, the green one is better.",
                "Mention the red lamp.",
            ),
            (
                "The red lamp, by the way, is no longer needed.",
                "You must always mention the red lamp.",
            ),
            ("You can use emojis, that is fine again.", "No emojis, please."),
            ("Vergesst die rote Lampe.", "Die rote Lampe muss in jedem Text vorkommen."),
            (
                "Die rote Lampe brauchen wir nicht mehr.",
                "Die rote Lampe muss in jedem Text vorkommen.",
            ),
            ("Das mit der roten Lampe hat sich erledigt.", "Immer die rote Lampe erwähnen!"),
            ("Emojis sind wieder erlaubt.", "Keine Emojis in Pressemitteilungen."),
        ] {
            assert!(revokes(later, requirement), "{later} / {requirement}");
        }
    }

    #[test]
    fn reminders_other_topics_and_longer_rules_revoke_nothing() {
        for (later, requirement) in [
            ("Don't forget the red lamp.", "You must always mention the red lamp."),
            ("Vergesst die rote Lampe nicht.", "Die rote Lampe muss in jedem Text vorkommen."),
            ("Forget the green lamp.", "You must always mention the red lamp."),
            ("Forget it.", "You must always mention the red lamp."),
            ("Forget the logo.", "Never use emojis next to the logo of a partner."),
            ("We no longer ship to Norway.", "Prices for Norway are in crowns."),
            ("The red lamp is great.", "You must always mention the red lamp."),
        ] {
            assert!(!revokes(later, requirement), "{later} / {requirement}");
        }
    }
}
