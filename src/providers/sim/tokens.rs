//! The simulated tokenizer. Its rules are simple enough to count by hand:
//!
//! - a word (letters and digits in a row) costs one token for each four characters that it begins;
//! - every other character costs one, except white space, which costs nothing;
//! - a message costs four on top of its text, a tool call four on top of its name and arguments;
//! - a prompt costs three on top of its messages.

use std::sync::Arc;

use crate::transcript::Message;

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

/// A whole prompt. An empty system message is not sent, and costs nothing.
pub fn count_prompt(system: &str, messages: &[Arc<Message>]) -> u32 {
    let system = if system.is_empty() { 0 } else { PER_MESSAGE + count(system) };
    let messages = messages.iter().map(|message| count_message(message));
    messages.fold(PER_PROMPT + system, u32::saturating_add)
}

/// The longest beginning that costs no more than `max_tokens`.
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

/// As [`Counter`], without a branch in it: a whole history is counted on every call, and nearly all of it is ASCII.
fn count_ascii(bytes: &[u8]) -> u32 {
    let (mut n_tokens, mut chars_of_word) = (0_u32, 0_u32);
    for byte in bytes {
        let class = ASCII_CLASSES[usize::from(*byte & 0x7f)];
        let begins_token = u32::from(chars_of_word % CHARS_PER_TOKEN == 0);
        n_tokens = n_tokens.wrapping_add((class & begins_token) | (class >> 1));
        chars_of_word = (chars_of_word + 1) & (class & 1).wrapping_neg();
    }
    n_tokens
}

/// Bit 0: belongs to a word. Bit 1: costs a token of its own.
static ASCII_CLASSES: [u32; 128] = ascii_classes();

const fn ascii_classes() -> [u32; 128] {
    let mut classes = [0; 128];
    let mut code = 0;
    while code < 128 {
        let c = code as u8 as char;
        classes[code] = match c {
            // White space as `char::is_whitespace` has it, which counts the vertical tab.
            '\t'..='\r' | ' ' => 0,
            _ if c.is_ascii_alphanumeric() => 1,
            _ => 2,
        };
        code += 1;
    }
    classes
}

fn count_message(message: &Message) -> u32 {
    let calls = message
        .tool_calls
        .iter()
        .map(|call| PER_MESSAGE + count(&call.name) + count(&call.arguments.to_string()));
    calls.fold(PER_MESSAGE + count(&message.text), u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_can_be_counted_by_hand() {
        assert_eq!(count(""), 0);
        assert_eq!(count("four"), 1);
        assert_eq!(count("fiver"), 2);
        assert_eq!(count("two words."), 4);
        assert_eq!(count("  \n "), 0);
        assert_eq!(count("INV-2041"), 3);
        assert_eq!(count_prompt("", &[]), 3);
        assert_eq!(count_prompt("four", &[]), 8);
    }

    #[test]
    fn ascii_counts_as_any_other_text() {
        let all: String = (0_u8..128).map(char::from).collect();
        let words = "It is 7:30 -- INV-20417 (paid)\tand\u{b}so_on, pneumonoultramicroscopic.\r\n";
        for text in [all.as_str(), words, "a", "abcd", "abcde", " a", "a b", "12345678 9"] {
            let mut counter = Counter::default();
            text.chars().for_each(|c| counter.add(c));
            assert_eq!(count(text), counter.n_tokens, "{text:?}");
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
