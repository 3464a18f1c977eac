//! Removes `<think>…</think>` from an answer while it streams, without any IO.
//!
//! Newer servers send thinking in a field of its own. Older ones, and models whose template has no parser, put it between tags in front of
//! the answer. Only that place counts: a tag in the middle of an answer is part of its text.

/// A stream of content that may begin with thinking.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    state: State,
    /// Content that the next delta decides on: the beginning of a tag, or space around one.
    held: String,
}

/// Thinking and text of one delta.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) thinking: String,
    pub(super) text: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Beginning,
    Thinking,
    /// Between the closing tag and the first word.
    Gap,
    Answer,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl ThinkTags {
    pub(super) fn push(&mut self, delta: &str) -> Split {
        let mut split = Split::default();
        if self.state == State::Answer {
            split.text.push_str(delta);
            return split;
        }
        self.held.push_str(delta);
        while self.step(&mut split) {}
        split
    }

    /// Returns the content that is still held when the stream ends.
    pub(super) fn finish(&mut self) -> Split {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking => Split { thinking: held, ..Split::default() },
            State::Gap => Split::default(),
            State::Beginning | State::Answer => Split { text: held, ..Split::default() },
        }
    }

    /// Moves on by one state, if the held content decides it.
    fn step(&mut self, split: &mut Split) -> bool {
        match self.state {
            State::Beginning => self.step_at_beginning(),
            State::Thinking => self.step_in_thinking(split),
            State::Gap => {
                self.held.drain(..self.held.len() - self.held.trim_start().len());
                self.enter_if(State::Answer, !self.held.is_empty())
            }
            State::Answer => {
                split.text.push_str(&std::mem::take(&mut self.held));
                false
            }
        }
    }

    fn step_at_beginning(&mut self) -> bool {
        let begun = self.held.trim_start();
        if let Some(thinking) = begun.strip_prefix(OPEN) {
            self.held = thinking.to_owned();
            return self.enter_if(State::Thinking, true);
        }
        let undecided = OPEN.starts_with(begun);
        self.enter_if(State::Answer, !undecided)
    }

    fn step_in_thinking(&mut self, split: &mut Split) -> bool {
        let closed = self.held.find(CLOSE);
        let end = closed.unwrap_or_else(|| self.held.len() - begun_close(&self.held));
        split.thinking.extend(self.held.drain(..end));
        if closed.is_some() {
            self.held.drain(..CLOSE.len());
        }
        self.enter_if(State::Gap, closed.is_some())
    }

    fn enter_if(&mut self, state: State, when: bool) -> bool {
        if when {
            self.state = state;
        }
        when
    }
}

/// Returns the number of bytes at the end that may be the beginning of a closing tag.
fn begun_close(held: &str) -> usize {
    let longest = (CLOSE.len() - 1).min(held.len());
    (1..=longest).rev().find(|n| held.as_bytes().ends_with(&CLOSE.as_bytes()[..*n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits `content` in every way into up to three deltas.
    fn check(content: &str, thinking: &str, text: &str) {
        let places: Vec<usize> =
            content.char_indices().map(|(at, _)| at).chain([content.len()]).collect();
        for first in &places {
            for second in places.iter().filter(|at| *at >= first) {
                let mut tags = ThinkTags::default();
                let mut all = Split::default();
                let deltas = [&content[..*first], &content[*first..*second], &content[*second..]];
                let mut add = |split: Split| {
                    all.thinking.push_str(&split.thinking);
                    all.text.push_str(&split.text);
                };
                for delta in deltas {
                    add(tags.push(delta));
                }
                add(tags.finish());
                assert_eq!(
                    (all.thinking.as_str(), all.text.as_str()),
                    (thinking, text),
                    "{deltas:?}"
                );
            }
        }
    }

    #[test]
    fn thinking_is_removed_at_any_delta_boundary() {
        check("<think>a <b> </thin? é</think>\n\n Ja </think>", "a <b> </thin? é", "Ja </think>");
        check("\n<think></think>x", "", "x");
        check("<think>never closed </thi", "never closed </thi", "");
        check("<think>only</think>  ", "only", "");
    }

    #[test]
    fn other_text_stays_unchanged() {
        check(" plain <think>no</think>", "", " plain <think>no</think>");
        check("<thinking>", "", "<thinking>");
        check("<thi", "", "<thi");
        check("", "", "");
    }
}
