//! The numbers of compaction.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The most that may stand in front of the coming turn.
    pub keep: Keep,
    /// Turns that stay word for word while they take no more than `keep_percent` of B; fewer where they take more or would
    /// push out a pin of a person.
    pub keep_turns: usize,
    pub keep_percent: u64,
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
    /// What a compacted conversation takes with its system part, per cent of the window without its reserve.
    pub start_percent: u64,
    /// What people wrote stays word for word up to this share of the window; 0: none of it does.
    pub keep_prompts_percent: u64,
    /// Per cent of the summariser's window that one batch of its input may take.
    pub batch_percent: u64,
}

/// A provider that refuses a compacted conversation again is offered less, step by step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// A summary, and the last turns word for word.
    #[default]
    Turns,
    /// A summary.
    Summary,
    /// A note that the earlier messages are in the archive.
    Reference,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            keep: Keep::Turns,
            keep_turns: 2,
            keep_percent: 50,
            tail_percent: 25,
            tail_max_tokens: 15_000,
            save_percent: 25,
            fit_percent: 60,
            tight_fit_percent: 85,
            start_percent: 100,
            keep_prompts_percent: 20,
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
