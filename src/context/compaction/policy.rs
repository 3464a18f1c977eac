//! The numbers of compaction.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Turns that stay word for word, whatever they weigh.
    pub keep_turns: usize,
    /// How much more may stay word for word, per cent of B.
    pub tail_percent: u64,
    pub tail_max_tokens: u64,
    /// A summary has to make the conversation smaller by this much.
    pub save_percent: u64,
    /// The compacted conversation with the coming turn must stay within this much of B, so that the next compaction
    /// is some turns away.
    pub fit_percent: u64,
    /// Holds instead where the turns that must stay are too heavy for `fit_percent`.
    pub tight_fit_percent: u64,
    /// Per cent of the summariser's window that one batch of its input may take.
    pub batch_percent: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            keep_turns: 2,
            tail_percent: 25,
            tail_max_tokens: 15_000,
            save_percent: 25,
            fit_percent: 60,
            tight_fit_percent: 85,
            batch_percent: 35,
        }
    }
}

impl Policy {
    /// What a summary may take at most: room for its pins and as much again, and a quarter of the narrower window. A window
    /// below 8,192 has to hold instructions and a batch too, which take some 2,048 however small it is.
    pub(super) fn summary_max_tokens(window_tokens: u64) -> u64 {
        let beside_a_batch = window_tokens.saturating_sub(2048) / 3;
        (window_tokens / 4).min(beside_a_batch).clamp(400, 12_288)
    }

    /// What a summary should take beside its pins.
    pub(super) fn prose_tokens(window_tokens: u64) -> u64 {
        (window_tokens * 8 / 100).clamp(200, 4096)
    }

    /// The share of a summary that pins may fill; the rest is for sentences.
    pub(super) fn pins_max_tokens(summary_max_tokens: u64) -> u64 {
        summary_max_tokens * 60 / 100
    }

    /// The size of a summary that has this much room for pins.
    pub(super) fn summary_for_pins(pins_tokens: u64) -> u64 {
        (pins_tokens * 100).div_ceil(60)
    }
}
