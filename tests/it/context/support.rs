//! Shared code of the tests of `context`: messages, an independent tokeniser, and the parts of a campaign.

use std::sync::Arc;

use dalsegno::{
    context::{
        Entry, Parts,
        compaction::View,
        parts::{Attachments, Campaign, Task},
        xml::FenceSeed,
    },
    transcript::{Message, Role, ToolCall},
};
use uuid::Uuid;

pub fn seed() -> FenceSeed {
    FenceSeed::from_bytes([42; 32])
}

pub fn message(role: Role, text: &str) -> Message {
    Message::new(role, text)
}

pub fn calling(text: &str, ids: &[&str]) -> Message {
    let tool_calls = ids.iter().map(|id| ToolCall {
        id: (*id).to_owned(),
        name: "look_up".to_owned(),
        arguments: serde_json::json!({ "query": "harbour" }),
        thinking: None,
    });
    Message { tool_calls: tool_calls.collect(), ..message(Role::Assistant, text) }
}

pub fn result(id: &str, text: &str) -> Message {
    Message {
        tool_call_id: Some(id.to_owned()),
        tool_name: Some("look_up".to_owned()),
        media: Vec::new(),
        ..message(Role::Tool, text)
    }
}

pub fn entry(seq: i64, message: Message) -> Entry {
    Entry::new(Uuid::from_u128(seq as u128), seq, message)
}

pub fn entries(messages: Vec<Message>) -> Vec<Entry> {
    (1..).zip(messages).map(|(seq, message)| entry(seq, message)).collect()
}

pub fn parts<'a>(view: View<'a>, prompt: &'a str) -> Parts<'a> {
    Parts {
        agent_prompt: "You write articles about harbours.",
        skills: &[],
        campaign: Campaign {
            version: 1,
            name: "Harbours",
            brief: "Ten articles about the harbours of the north.",
            client_context: None,
        },
        edicts: &[],
        facts: None,
        roster: &[],
        tools: &[],
        view,
        heard_to_seq: None,
        notice: None,
        board: None,
        statuses: &[],
        parameters: None,
        blackboard: None,
        results: None,
        result_schema: None,
        attachments: Attachments::NONE,
        task: Task {
            entry_id: Uuid::from_u128(u128::MAX),
            prompt,
            asked_by: None,
            is_correction: false,
        },
    }
}

/// A tokeniser that counts like subword tokenisers: short words are one token, long ones are split, marks count alone,
/// and a blank belongs to the next word. `letters` is the number of letters per token.
#[derive(Clone, Copy)]
pub struct Tokeniser {
    pub letters: usize,
    pub per_han: usize,
    pub per_message: u64,
}

impl Tokeniser {
    pub fn count(&self, text: &str) -> u64 {
        let mut tokens = 0;
        let mut word = 0_usize;
        let mut digits = 0_usize;
        for character in text.chars().chain(['\n']) {
            if character.is_ascii_digit() {
                digits += 1;
                continue;
            }
            tokens += digits.div_ceil(3);
            digits = 0;
            let is_wide = ('\u{2e80}'..='\u{ffef}').contains(&character);
            if character.is_alphabetic() && !is_wide {
                word += 1;
                continue;
            }
            tokens += word.div_ceil(self.letters);
            word = 0;
            if is_wide {
                tokens += self.per_han;
            } else if character != ' ' {
                tokens += character.len_utf8().min(3);
            }
        }
        // Subtracts the line break that was added to the text.
        (tokens - 1) as u64
    }

    pub fn count_call(&self, system: &str, messages: &[Arc<Message>]) -> u64 {
        let said: u64 = messages
            .iter()
            .map(|message| {
                let calls: u64 = message
                    .tool_calls
                    .iter()
                    .map(|call| {
                        self.count(&call.name) + self.count(&call.arguments.to_string()) + 6
                    })
                    .sum();
                self.count(&message.text) + calls + self.per_message
            })
            .sum();
        self.count(system) + self.per_message + said
    }
}

const NOUNS: [&str; 16] = [
    "harbour",
    "captain",
    "lighthouse",
    "warehouse",
    "ferry",
    "merchant",
    "storm",
    "crane",
    "pilot",
    "dock",
    "archive",
    "chapter",
    "reader",
    "museum",
    "fishery",
    "tide",
];
const VERBS: [&str; 12] = [
    "describes",
    "explains",
    "mentions",
    "recalls",
    "compares",
    "restores",
    "measures",
    "questions",
    "illustrates",
    "connects",
    "underlines",
    "revisits",
];
const ENDS: [&str; 8] = [
    "with patience",
    "in plain words",
    "for the second part",
    "before the conclusion",
    "as the editor asked",
    "without much ornament",
    "from the older sources",
    "in the tone of the series",
];

/// Returns prose without anything that is pinned, different for each `salt`.
pub fn prose(salt: usize, sentences: usize) -> String {
    let mut state = salt as u64 * 2_654_435_761 + 1;
    let mut pick = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let mut text = String::new();
    for _ in 0..sentences {
        text.push_str(&format!(
            "The {} {} the {} {}. ",
            NOUNS[pick(NOUNS.len())],
            VERBS[pick(VERBS.len())],
            NOUNS[pick(NOUNS.len())],
            ENDS[pick(ENDS.len())]
        ));
    }
    text.truncate(text.trim_end().len());
    text
}
