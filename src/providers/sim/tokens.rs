//! The simulated tokenizer. Its rules are simple enough to count by hand:
//!
//! - a word (letters and digits in a row) costs one token for each four characters that it begins;
//! - every other character costs one, except white space, which costs nothing;
//! - a message costs four on top of its text, a tool call four on top of its name and arguments;
//! - a prompt costs three on top of its messages.

use crate::transcript::Message;

const CHARS_PER_TOKEN: u32 = 4;
const PER_MESSAGE: u32 = 4;
const PER_PROMPT: u32 = 3;

pub fn count(text: &str) -> u32 {
    let mut counter = Counter::default();
    text.chars().for_each(|c| counter.add(c));
    counter.n_tokens
}

/// A whole prompt. An empty system message is not sent, and costs nothing.
pub fn count_prompt(system: &str, messages: &[Message]) -> u32 {
    let system = if system.is_empty() { 0 } else { PER_MESSAGE + count(system) };
    let messages = messages.iter().map(count_message);
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
    fn a_cut_keeps_as_much_as_fits() {
        let text = "zwölf Boxkämpfer jagen Viktor, quer über den Sylter Deich";
        for max_tokens in 0..=count(text) {
            assert_eq!(count(cut(text, max_tokens)), max_tokens);
        }
        assert_eq!(cut(text, 999), text);
    }
}
