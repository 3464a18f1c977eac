//! Decoder for the output of Claude Code with `--output-format=stream-json`: bytes in, events out, no IO.
//!
//! One JSON object per line. Lines are cut at the byte `\n` before anything is decoded, so bytes may come in any pieces. Events borrow from
//! the decoder and are read one by one. Nothing is collected, and memory is bounded by the limit of a line.
//!
//! No output of a newer version ends a turn. Unknown types come out raw, and unknown fields are ignored. Invalid numbers (a cost of `NaN`)
//! are taken for unknown, and lines that are not JSON come out as garbage. The reader decides what a missing field means.

mod decode;
mod event;
mod lenient;
mod text;

pub use self::{
    event::{
        AssistantLine, Block, Change, ControlResponse, Event, Exchange, Init, McpServer,
        ModelUsage, Reply, Retry, StreamLine, Tokens, TurnResult,
    },
    text::Text,
};
use super::line_splitter::Lines;
pub use super::line_splitter::{Limits, TooMuch};

/// One stream, from its first byte to its last.
#[derive(Debug)]
pub struct Decoder {
    lines: Lines,
}

impl Decoder {
    pub fn within(limits: Limits) -> Self {
        Self { lines: Lines::within(limits) }
    }

    /// Adds bytes. All their events have to be fetched before the next push.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooMuch> {
        self.lines.push(bytes)
    }

    /// Returns the next event whose line is complete.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooMuch> {
        Ok(self.lines.next_line()?.map(decode::event))
    }

    /// Returns the event of a last line without its end, once the stream has ended.
    pub fn last_event(&self) -> Option<Event<'_>> {
        let rest = self.lines.rest();
        (!rest.is_empty()).then(|| decode::event(rest))
    }
}
