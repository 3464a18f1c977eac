//! What Claude Code prints with `--output-format=stream-json`: bytes in, events out, no IO.
//!
//! One JSON object per line. Lines are cut at the byte `\n` before anything is decoded, so bytes may come in any
//! pieces. Events borrow from the decoder and are looked at one by one: nothing is collected, and what is held is
//! bounded by the limit of a line.
//!
//! Nothing that a newer version prints ends a turn: unknown types come out raw, unknown fields are passed over,
//! numbers that are none (a cost of `NaN`) are taken for unknown, and lines that are no JSON come out as garbage. What
//! it means that something is missing is decided by whoever reads.

mod decode;
mod event;
mod lenient;
mod text;

pub use self::{
    event::{
        Block, Change, Controlled, Event, Exchange, Init, McpServer, ModelUsage, Reply, Retry,
        Said, Shown, Tokens, TurnResult,
    },
    text::Text,
};
use super::lines::Lines;
pub use super::lines::{Limits, TooMuch};

/// One stream, from its first byte to its last.
#[derive(Debug)]
pub struct Decoder {
    lines: Lines,
}

impl Decoder {
    pub fn within(limits: Limits) -> Self {
        Self { lines: Lines::within(limits) }
    }

    /// Takes what came. Every event of it has to be fetched before the next push.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooMuch> {
        self.lines.push(bytes)
    }

    /// The next event whose line is whole.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooMuch> {
        Ok(self.lines.next_line()?.map(decode::event))
    }

    /// The event of a last line that lacks its end, once the stream has ended.
    pub fn last_event(&self) -> Option<Event<'_>> {
        let rest = self.lines.rest();
        (!rest.is_empty()).then(|| decode::event(rest))
    }
}
