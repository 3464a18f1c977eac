//! The gates that a summary has to pass before it may replace messages.

use serde::{Deserialize, Serialize};

use crate::{
    calibration::Calibration,
    compaction::{
        pins::{Haystack, Pin},
        sections,
    },
    weight::Weight,
    xml,
};

/// Beginnings of a refusal. Only the beginning counts: a record may report that a person declined something.
const REFUSAL_OPENINGS: [&str; 12] = [
    "i can't",
    "i cannot",
    "i can not",
    "i'm sorry",
    "i am sorry",
    "i'm unable",
    "i am unable",
    "i won't",
    "sorry,",
    "as an ai",
    "i must decline",
    "unfortunately, i",
];

#[derive(Debug, Clone, Copy)]
pub struct Gates<'a> {
    pub calibration: &'a Calibration,
    pub max_tokens: u64,
    /// Sizes of the folded conversation and of the tail, for the message only: `max_tokens` was derived from them.
    pub tokens_before: u64,
    pub tail_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "refusal")]
pub enum Refusal {
    #[error("the summariser gave no answer: {reason}")]
    NoAnswer { reason: String },
    #[error("the summary is empty")]
    Empty,
    #[error("the model declined: {opening}")]
    Declined { opening: String },
    #[error("the summary lacks sections: {}", titles.join(", "))]
    MissingSections { titles: Vec<String> },
    #[error("the summary lost {} pinned strings: {}", pins.len(), pins.join(" | "))]
    LostPins { pins: Vec<String> },
    #[error(
        "the summary has {tokens} tokens, at most {max_tokens} save enough and fit (the conversation had {tokens_before} tokens, of which {tail_tokens} stay)"
    )]
    TooLong { tokens: u64, max_tokens: u64, tokens_before: u64, tail_tokens: u64 },
}

impl Gates<'_> {
    /// Returns the summary to keep, or all of its faults.
    pub fn check_summary<'p>(
        &self,
        answer: &str,
        required: impl IntoIterator<Item = &'p Pin>,
    ) -> Result<String, Vec<Refusal>> {
        let bare = strip(answer);
        if bare.is_empty() {
            return Err(vec![Refusal::Empty]);
        }
        let required: Vec<_> = required.into_iter().collect();
        // The summariser read escaped text and may copy the references letter by letter, so they are resolved. The
        // summary is escaped again when it is sent. But a pin may itself contain text that looks like a reference.
        let plain = xml::unescape(bare);
        let lost = check_pins(&plain, &required);
        let (summary, lost) = match lost {
            Some(_) if check_pins(bare, &required).is_none() => (bare.into(), None),
            lost => (plain, lost),
        };
        let refusals: Vec<_> = [
            check_not_declined(&summary),
            missing_sections(&summary),
            lost,
            self.too_long(&summary),
        ]
        .into_iter()
        .flatten()
        .collect();
        if refusals.is_empty() { Ok(summary.into_owned()) } else { Err(refusals) }
    }

    fn too_long(&self, summary: &str) -> Option<Refusal> {
        let tokens = self.calibration.tokens(Weight::of_text(summary));
        (tokens > self.max_tokens).then_some(Refusal::TooLong {
            tokens,
            max_tokens: self.max_tokens,
            tokens_before: self.tokens_before,
            tail_tokens: self.tail_tokens,
        })
    }
}

impl Refusal {
    /// Returns a short text for the summariser's next attempt, with at most `pins_max` lost pins.
    pub fn brief(&self, pins_max: usize) -> String {
        match self {
            Self::LostPins { pins } if pins.len() > pins_max => {
                let some = Self::LostPins { pins: pins[..pins_max].to_vec() };
                format!("{some}, and {} more", pins.len() - pins_max)
            }
            other => other.to_string(),
        }
    }
}

/// Removes the frame that models put around an answer.
fn strip(answer: &str) -> &str {
    let mut text = answer.trim();
    if let Some(thought) = text.strip_prefix("<think>") {
        text = thought.split_once("</think>").map_or("", |(_, rest)| rest).trim();
    }
    if let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        // The rest of the fence's line names a language.
        text = inside.split_once('\n').map_or("", |(_, rest)| rest).trim();
    }
    text
}

fn check_not_declined(summary: &str) -> Option<Refusal> {
    let opening: String = summary.chars().take(80).collect();
    let plain = opening.to_lowercase().replace('’', "'");
    REFUSAL_OPENINGS
        .iter()
        .any(|start| plain.starts_with(start))
        .then_some(Refusal::Declined { opening })
}

fn missing_sections(summary: &str) -> Option<Refusal> {
    let titles: Vec<_> = sections::missing(summary).into_iter().map(str::to_owned).collect();
    (!titles.is_empty()).then_some(Refusal::MissingSections { titles })
}

fn check_pins(summary: &str, required: &[&Pin]) -> Option<Refusal> {
    let haystack = Haystack::of(summary);
    let pins: Vec<_> = required
        .iter()
        .filter(|pin| !haystack.contains_pin(pin))
        .map(|pin| pin.text.clone())
        .collect();
    (!pins.is_empty()).then_some(Refusal::LostPins { pins })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::{
        pins::{PinKind, Speaker},
        sections::SECTIONS,
    };

    fn judge(answer: &str) -> Result<String, Vec<Refusal>> {
        let gates = Gates {
            calibration: &Calibration::cold(),
            max_tokens: 200,
            tokens_before: 1000,
            tail_tokens: 100,
        };
        let pin = Pin {
            kind: PinKind::Url,
            text: "https://example.org/?a=1&b=2".to_owned(),
            voice: Speaker::Person,
        };
        gates.check_summary(answer, [&pin])
    }

    fn record(facts: &str) -> String {
        SECTIONS.iter().map(|(title, _)| format!("## {title}\n{facts}\n")).collect()
    }

    #[test]
    fn a_good_record_passes_even_wrapped_and_escaped() {
        let good = record("x").replacen('x', "https://example.org/?a=1&amp;b=2", 1);
        let kept = judge(&format!("<think>hm</think>\n```markdown\n{good}\n```")).unwrap();
        assert!(kept.contains("?a=1&b=2"));
    }

    #[test]
    fn every_fault_is_named() {
        assert_eq!(judge(" \n"), Err(vec![Refusal::Empty]));
        assert_eq!(judge("<think>only thoughts"), Err(vec![Refusal::Empty]));
        let faults = judge("I’m sorry, but I can't help with that.").unwrap_err();
        assert!(matches!(faults[0], Refusal::Declined { .. }));
        assert!(matches!(faults[1], Refusal::MissingSections { .. }));
        assert!(matches!(faults[2], Refusal::LostPins { .. }));
        let long = record(&"https://example.org/?a=1&b=2 ".repeat(50));
        assert!(matches!(judge(&long).unwrap_err()[..], [Refusal::TooLong { .. }]));
    }
}
