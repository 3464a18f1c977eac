//! The simulated tokenizer. Its rules are simple enough to count by hand:
//!
//! - a word (letters and digits in a row) costs one token for each four characters that it begins;
//! - every other character costs one, except white space, which costs nothing;
//! - a message costs four on top of its text, a tool call four on top of its name and arguments, a tool that is offered four on
//!   top of its name, description and schema;
//! - a prompt costs three on top of its messages.

use std::sync::Arc;

use crate::transcript::{Message, ToolCall, ToolSpec};

const CHARS_PER_TOKEN: u32 = 4;
const PER_MESSAGE: u32 = 4;
const PER_PROMPT: u32 = 3;

pub fn count(text: &str) -> u32 {
    if text.is_ascii() {
        return count_ascii(text.as_bytes());
    }
    let mut counter = Counter::default();
    text.chars().for_each(|c| counter.add(c));
    counter.n_tokens
}

/// Counts a whole prompt. An empty system message is not sent, and costs nothing.
pub fn count_prompt(system: &str, messages: &[Arc<Message>]) -> u32 {
    let system = if system.is_empty() { 0 } else { PER_MESSAGE + count(system) };
    let messages = messages.iter().map(|message| count_message(message));
    messages.fold(PER_PROMPT + system, u32::saturating_add)
}

/// Counts the offered tools, which cost the same in every call.
pub(super) fn count_tools(tools: &[Arc<ToolSpec>]) -> u32 {
    let tools = tools.iter().map(|tool| {
        let schema = count(&tool.input_schema.to_string());
        (PER_MESSAGE + count(&tool.name) + count(&tool.description)).saturating_add(schema)
    });
    tools.fold(0, u32::saturating_add)
}

pub(super) fn count_calls(calls: &[ToolCall]) -> u32 {
    let calls = calls
        .iter()
        .map(|call| PER_MESSAGE + count(&call.name) + count(&call.arguments.to_string()));
    calls.fold(0, u32::saturating_add)
}

/// Returns the longest beginning that costs at most `max_tokens`.
pub(super) fn cut(text: &str, max_tokens: u32) -> &str {
    let mut counter = Counter::default();
    let past = text.char_indices().find(|(_, c)| {
        counter.add(*c);
        counter.n_tokens > max_tokens
    });
    past.map_or(text, |(at, _)| &text[..at])
}

#[derive(Debug, Default)]
struct Counter {
    n_tokens: u32,
    chars_of_word: u32,
}

impl Counter {
    fn add(&mut self, c: char) {
        if c.is_alphanumeric() {
            let begins_token = self.chars_of_word.is_multiple_of(CHARS_PER_TOKEN);
            self.n_tokens = self.n_tokens.saturating_add(u32::from(begins_token));
            self.chars_of_word += 1;
        } else {
            self.n_tokens = self.n_tokens.saturating_add(u32::from(!c.is_whitespace()));
            self.chars_of_word = 0;
        }
    }
}

/// Counts like [`Counter`], sixty-four characters at once: every call counts a whole history, and nearly all of it is ASCII.
fn count_ascii(bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    let mut run = Run::default();
    for block in blocks.iter().chain([&last]) {
        run.add(block);
    }
    run.n_tokens
}

/// State that continues from one block to the next.
#[derive(Default)]
struct Run {
    n_tokens: u32,
    chars_of_word: u32,
}

impl Run {
    fn add(&mut self, block: &[u8; 64]) {
        let (in_word, n_alone) = classify(block);
        // The word that began in an earlier block, then those of this one.
        let n_more = if self.chars_of_word > 0 { in_word.trailing_ones() } else { 0 };
        let begun = self.chars_of_word.div_ceil(CHARS_PER_TOKEN);
        let of_old = (self.chars_of_word + n_more).div_ceil(CHARS_PER_TOKEN) - begun;
        let new = in_word & u64::MAX.checked_shl(n_more).unwrap_or(0);
        self.n_tokens += n_alone + of_old + count_words(new);
        self.chars_of_word = match in_word.leading_ones() {
            64 => self.chars_of_word + 64,
            n => n,
        };
    }
}

/// Counts the tokens of words, whose characters are the bits that are set: one for each fourth character from a word's beginning.
fn count_words(in_word: u64) -> u32 {
    let goes_on = in_word & (in_word << 1) & (in_word << 2) & (in_word << 3) & (in_word << 4);
    let mut begin = in_word & !(in_word << 1);
    let mut n_tokens = 0;
    while begin != 0 {
        n_tokens += begin.count_ones();
        begin = (begin << CHARS_PER_TOKEN) & goes_on;
    }
    n_tokens
}

/// Returns the characters of words as bits, and the number of characters that cost a token of their own.
fn classify(block: &[u8; 64]) -> (u64, u32) {
    let (mut in_word, mut n_alone) = ([0_u8; 64], 0_u8);
    for (byte, in_word) in block.iter().zip(&mut in_word) {
        let is_word = (byte.wrapping_sub(b'0') < 10) | ((byte | 0x20).wrapping_sub(b'a') < 26);
        // Like `char::is_whitespace`, which includes the vertical tab.
        let is_space = (*byte == b' ') | (byte.wrapping_sub(b'\t') < 5);
        *in_word = u8::from(is_word);
        n_alone += u8::from(!is_word & !is_space);
    }
    // Packs one bit of each byte, eight bytes at once: the product brings them side by side into its highest byte.
    let (eights, _) = in_word.as_chunks::<8>();
    let bits = eights.iter().rev().fold(0, |bits, eight| {
        let packed = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits << 8 | packed
    });
    (bits, u32::from(n_alone))
}

fn count_message(message: &Message) -> u32 {
    (PER_MESSAGE + count(&message.text)).saturating_add(count_calls(&message.tool_calls))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_can_be_counted_by_hand() {
        assert_eq!(count(""), 0);
        assert_eq!(count("four"), 1);
        assert_eq!(count("fiver"), 2);
        assert_eq!(count("two words."), 4);
        assert_eq!(count("  \n "), 0);
        assert_eq!(count("INV-2041"), 3);
        assert_eq!(count_prompt("", &[]), 3);
        assert_eq!(count_prompt("four", &[]), 8);
    }

    proptest! {
        #[test]
        fn ascii_counts_like_any_other_text(text in "[ -~\\t\\r\\n\\x0b\\x0c\\x1c]{0,300}|[a-z0-9 ]{0,300}|[a-z]{60,200}") {
            let mut counter = Counter::default();
            text.chars().for_each(|c| counter.add(c));
            prop_assert_eq!(count(&text), counter.n_tokens);
        }
    }

    #[test]
    fn a_cut_keeps_as_much_as_fits() {
        let text = "zwölf Boxkämpfer jagen Viktor, quer über den Sylter Deich";
        for max_tokens in 0..=count(text) {
            assert_eq!(count(cut(text, max_tokens)), max_tokens);
        }
        assert_eq!(cut(text, 999), text);
    }
}
