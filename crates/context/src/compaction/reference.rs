//! The last resort: a note that earlier messages are in the archive.
//!
//! It replaces a summary if the coming task leaves no room for one. Nothing is lost: the pins stay in the compaction's
//! record, and the next summary reads the messages again. A successor takes over the summary before it, and the messages.

use crate::{compaction::generations::Compaction, weight::Weight};

/// Summary of a compaction that has read nothing.
pub const REFERENCE: &str = "\
The earlier messages are in this conversation's archive: beside the task below there is no room for them. Do not guess what they \
said.";

pub(super) fn text() -> String {
    REFERENCE.to_owned()
}

pub(super) fn weight() -> Weight {
    Weight::of_text(REFERENCE)
}

impl Compaction {
    /// Returns true if it replaces messages that no summary has read.
    pub fn is_reference(&self) -> bool {
        self.summary == REFERENCE
    }
}
