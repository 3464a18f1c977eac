//! A summary without a model: the headings, every pin, and as many sentences as still fit.
//!
//! It does not understand the text, but it loses no pin and needs no model. So a turn never has to wait for a working summariser.

use crate::{
    calibration::Calibration,
    compaction::{
        pins::{Pin, PinKind},
        sections::{self, DECISIONS, DONE, FACTS, GOAL, OPEN, REQUIREMENTS, SECTIONS},
    },
    entry::Entry,
    transcript::Role,
    weight::Weight,
};

const SENTENCE_MAX_CHARS: usize = 160;
/// Limit of the examined sentences: more would not fit into any summary.
const SENTENCES_MAX: usize = 200;

/// Makes an extract. Adds sentences while they stay within `target_tokens`. Pins and headings are always there, so a
/// result that is too long means that even they do not fit.
pub fn extract(
    previous: Option<&str>,
    folded: &[Entry],
    pins: &[Pin],
    target_tokens: u64,
    calibration: &Calibration,
) -> String {
    let mut record = Record::with_pins(pins);
    let room = calibration.weight_within(target_tokens);
    let mut left = room.saturating_sub(Weight::of_text(&record.render()));
    for (section, sentence) in sentences(previous, folded) {
        let line = format!("- {sentence}");
        let weight = Weight::of_text(&line) + Weight::from_millitokens(500);
        if weight <= left && record.put(section, line) {
            left = left.saturating_sub(weight);
        }
    }
    record.render()
}

/// Returns the weight of the empty headings.
pub(super) fn skeleton() -> Weight {
    Weight::of_text(&Record::with_pins(&[]).render())
}

/// Lines per section, in the order of [`SECTIONS`].
struct Record([Vec<String>; SECTIONS.len()]);

impl Record {
    fn with_pins(pins: &[Pin]) -> Self {
        let mut record = Self(Default::default());
        for pin in pins {
            let section = if pin.kind == PinKind::Requirement { REQUIREMENTS } else { FACTS };
            record.put(section, format!("- {}", pin.text));
        }
        record
    }

    /// Adds a line. Returns false if it is there already.
    fn put(&mut self, section: &str, line: String) -> bool {
        let Some(at) = SECTIONS.iter().position(|(title, _)| *title == section) else {
            return false;
        };
        let lines = &mut self.0[at];
        let is_new = !lines.contains(&line);
        if is_new {
            lines.push(line);
        }
        is_new
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for ((title, _), lines) in SECTIONS.iter().zip(&self.0) {
            text.push_str("## ");
            text.push_str(title);
            text.push('\n');
            if lines.is_empty() {
                text.push_str(match *title {
                    REQUIREMENTS => "None beside what people wrote.\n",
                    _ => "None recorded.\n",
                });
            }
            for line in lines {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Collects sentences, the most useful first: the goal, open points, decisions, then what happened, newest first.
fn sentences(previous: Option<&str>, folded: &[Entry]) -> Vec<(&'static str, String)> {
    let previous = previous.unwrap_or_default();
    let carried = |section: &'static str| {
        sections::body(previous, section)
            .map(|line| line.trim_start_matches(['-', '*', ' ']))
            .filter(|line| !line.starts_with("None"))
            .map(move |line| (section, clip(line)))
    };
    let of_role = |role: Role| folded.iter().filter(move |entry| entry.message.role == role);
    let first_task = of_role(Role::User).next().map(first_sentence);
    let last_task = of_role(Role::User).next_back();
    let goal: Vec<_> =
        carried(GOAL).chain(first_task.map(|sentence| (GOAL, sentence))).take(1).collect();
    let open = last_task
        .into_iter()
        .flat_map(|entry| [(OPEN, first_sentence(entry)), (OPEN, last_sentence(entry))]);
    let done = of_role(Role::Assistant)
        .rev()
        .flat_map(|entry| [(DONE, first_sentence(entry)), (DONE, last_sentence(entry))]);
    goal.into_iter()
        .chain(open)
        .chain(carried(DECISIONS))
        .chain(done.take(SENTENCES_MAX))
        .chain(carried(DONE))
        .filter(|(_, sentence)| !sentence.is_empty())
        .take(SENTENCES_MAX * 2)
        .collect()
}

fn first_sentence(entry: &Entry) -> String {
    let text = entry.message.text.trim_start();
    clip(&text[..sentence_ends(text).next().unwrap_or(text.len())])
}

fn last_sentence(entry: &Entry) -> String {
    let text = entry.message.text.trim_end();
    let body = &text[..text.len() - text.chars().next_back().map_or(0, char::len_utf8)];
    clip(&text[sentence_ends(body).last().unwrap_or(0)..])
}

/// Returns the positions after sentences.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(|(at, character)| {
        let end = at + character.len_utf8();
        let is_end = match character {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => text[end..].starts_with(char::is_whitespace),
            _ => false,
        };
        is_end.then_some(end)
    })
}

/// Makes one line of a sentence, without marks that would make it look like a heading.
fn clip(sentence: &str) -> String {
    let sentence = sentence.trim().trim_start_matches(['#', '*', '-', ' ']);
    let mut line: String = sentence.chars().take(SENTENCE_MAX_CHARS).collect();
    if line.len() < sentence.len() {
        line.push('…');
    }
    line.replace(['\n', '\r'], " ")
}
