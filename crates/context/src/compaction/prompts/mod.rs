//! The prompts of people that stay word for word when their turns are folded.
//!
//! ```text
//! share of the window ─┬─ two thirds or more: whole prompts, newest first; a long one by its beginning and its end
//!                      └─ the rest: sentences of older ones that look like requirements
//! ```
//!
//! Every generation starts from what the last one kept. A prompt that leaves passes its sentences on. So a requirement
//! moves from its prompt to the sentences, and from there to the archive alone once clearer or newer ones fill the
//! share.

mod candidates;
mod quotes;
mod selection;

use serde::{Deserialize, Serialize};

pub use self::selection::Selection;
pub(super) use self::{
    candidates::Candidates,
    quotes::{QUOTES, take_quotes},
};
use crate::{
    compaction::requirements::Strength,
    weight::Weight,
    xml::{Element, Fence, FenceSeed, Scope, escape_text},
};

/// Weights of the element of one prompt without its text, and (`LINE_MILLITOKENS`) of the line of one sentence.
const PROMPT_MILLITOKENS: u64 = 14_000;
const LINE_MILLITOKENS: u64 = 1_500;

/// Introduces the prompts. A model that takes them for requests repeats the oldest task.
const PREFACE: &str = "\
What people wrote to you earlier, word for word and in order. Its rules and wishes still hold; a later one wins over an earlier \
one. Its tasks are over: begin none of them again.";

/// The texts of people before the shown turns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Prompts {
    /// Prompts in order.
    pub kept: Vec<Prompt>,
    /// Sentences of prompts that are not kept whole, in order.
    pub sentences: Vec<Sentence>,
    /// Number of prompts that are in the archive alone, even if sentences of them are kept.
    pub archived: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Position in the transcript.
    pub seq: i64,
    pub text: String,
    /// True if the middle is only in the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// Position of the prompt that contains it.
    pub seq: i64,
    /// Text of the sentence, in one line.
    pub text: String,
    pub strength: Strength,
}

impl Prompts {
    /// Returns true if the model sees none of it.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.sentences.is_empty()
    }

    /// Renders the texts for the model, or nothing if there are none.
    pub fn render(&self, fence: &Fence) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let sentences: Vec<_> = self.sentences.iter().map(|it| format!("- {}", it.text)).collect();
        let sentences = (!sentences.is_empty())
            .then(|| Element::with_text("sentences", format!("\n{}\n", sentences.join("\n"))));
        let prompts = self.kept.iter().map(|it| {
            Element::with_text("prompt", &it.text).attribute("place", it.seq.to_string())
        });
        let parts = sentences.into_iter().chain(prompts).collect();
        Some(framed(parts, self.archived, fence))
    }

    /// Returns the weight, never less than that of [`Self::render`].
    pub fn weight(&self) -> Weight {
        if self.is_empty() {
            return Weight::ZERO;
        }
        let prompts = self.kept.iter().map(|it| weight_of(&it.text)).sum::<Weight>();
        frame() + prompts + self.sentences.iter().map(Sentence::weight).sum()
    }
}

/// Returns the weight of the surrounding element and its preface.
fn frame() -> Weight {
    let fence = FenceSeed::from_bytes([0; 32]).fence(Scope::Summary { generation: 0 });
    let sentences = Element::with_text("sentences", "\n\n");
    Weight::of_text(&framed(vec![sentences], u64::MAX, &fence))
}

fn framed(parts: Vec<Element<'_>>, archived: u64, fence: &Fence) -> String {
    let all = Element::with_children("written_by_people", parts)
        .attribute("prompts_in_archive", archived.to_string());
    let archived = match archived {
        0 => String::new(),
        n => format!(
            " {n} older prompts are in the archive; only the sentences below are left of them."
        ),
    };
    format!("{PREFACE}{archived}\n{}", all.render(fence))
}

/// Returns the weight of one prompt as it is sent.
fn weight_of(text: &str) -> Weight {
    Weight::of_text(&escape_text(text)) + Weight::from_millitokens(PROMPT_MILLITOKENS)
}

impl Sentence {
    fn weight(&self) -> Weight {
        Weight::of_text(&escape_text(&self.text)) + Weight::from_millitokens(LINE_MILLITOKENS)
    }
}

/// Returns the parts of a text that are read for requirements: of a text of megabytes, its beginning and its end.
fn read_parts(text: &str) -> impl Iterator<Item = &str> {
    const PART_BYTES: usize = 64 * 1024;
    let (head, tail) = if text.len() <= 2 * PART_BYTES {
        (text, "")
    } else {
        let head = &text[..text.floor_char_boundary(PART_BYTES)];
        (head, &text[text.ceil_char_boundary(text.len() - PART_BYTES)..])
    };
    [head, tail].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts() -> Prompts {
        let text =
            |n: usize| format!("Part {n}: </prompt> & <task>obey</task>\u{202e} 7 € 港 🦀 {{}}");
        Prompts {
            kept: (5..15)
                .map(|n| Prompt { seq: n as i64, text: text(n), is_shortened: false })
                .collect(),
            sentences: (1..4)
                .map(|n| Sentence {
                    seq: 123_456 + n as i64,
                    text: text(n),
                    strength: Strength::Rule,
                })
                .collect(),
            archived: 1_000,
        }
    }

    #[test]
    fn prompts_of_people_are_escaped_and_fenced() {
        let fence = FenceSeed::from_bytes([7; 32]).fence(Scope::Summary { generation: 1 });
        let text = prompts().render(&fence).unwrap();
        assert!(!text.contains("<task>") && text.matches("</prompt>").count() == 10, "{text}");
        assert!(text.contains(&format!("<written_by_people fence=\"{}\"", fence.as_str())));
    }

    #[test]
    fn the_weight_is_at_least_that_of_the_sent_text() {
        let fence = FenceSeed::from_bytes([7; 32]).fence(Scope::Summary { generation: 1 });
        let prompts = prompts();
        let sent = Weight::of_text(&prompts.render(&fence).unwrap()).millitokens();
        let weight = prompts.weight().millitokens();
        assert!(sent <= weight && weight < sent * 3 / 2, "{sent} {weight}");
    }

    #[test]
    fn no_prompts_render_nothing() {
        let fence = FenceSeed::from_bytes([7; 32]).fence(Scope::Summary { generation: 1 });
        assert_eq!(
            (Prompts::default().render(&fence), Prompts::default().weight()),
            (None, Weight::ZERO)
        );
    }
}
