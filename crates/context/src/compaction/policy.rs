//! The limits and percentages of compaction.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Largest part of the conversation that may precede the coming turn.
    pub keep: Keep,
    /// Number of turns that stay word for word while they take at most `keep_percent` of B. Fewer stay if they take
    /// more or would push out a pin of a person.
    pub keep_turns: usize,
    pub keep_percent: u64,
    /// Room for further turns that stay word for word, per cent of B.
    pub tail_percent: u64,
    pub tail_max_tokens: u64,
    /// Percentage by which a summary has to make the conversation smaller.
    pub save_percent: u64,
    /// Percentage of B within which the compacted conversation and the coming turn must stay, so that the next
    /// compaction is some turns away.
    pub fit_percent: u64,
    /// Percentage that applies instead if the turns that must stay are too heavy for `fit_percent`.
    pub tight_fit_percent: u64,
    /// Percentage of the window without its reserve that a compacted conversation takes with its system part.
    pub start_percent: u64,
    /// Share of the window up to which people's texts stay word for word; 0 keeps none.
    pub keep_prompts_percent: u64,
    /// Percentage of the summariser's window that one batch of its input may take.
    pub batch_percent: u64,
}

/// The part of the conversation that is kept. A provider that refuses a compacted conversation is offered less, step by step.
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
    /// Returns the largest size of a summary: room for its pins and as much again, and a quarter of the narrower
    /// window. A window below 8,192 has to hold instructions and a batch too, which take some 2,048 even there.
    pub(super) fn summary_max_tokens(window_tokens: u64) -> u64 {
        let beside_a_batch = window_tokens.saturating_sub(2048) / 3;
        (window_tokens / 4).min(beside_a_batch).clamp(400, 12_288)
    }

    /// Returns the size that a summary should have beside its pins.
    pub(super) fn prose_tokens(window_tokens: u64) -> u64 {
        (window_tokens * 8 / 100).clamp(200, 4096)
    }

    /// Returns the share of a summary that pins may fill; the rest is for sentences.
    pub(super) fn pins_max_tokens(summary_max_tokens: u64) -> u64 {
        summary_max_tokens * 60 / 100
    }

    /// Returns the size of a summary that has this much room for pins.
    pub(super) fn summary_for_pins(pins_tokens: u64) -> u64 {
        (pins_tokens * 100).div_ceil(60)
    }
}
