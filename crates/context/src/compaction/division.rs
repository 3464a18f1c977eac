//! Divides the room beside the turns that stay between what people wrote and the summary.
//!
//! The summary comes first with its headings, its pins and some sentences. What people wrote takes its share of the
//! rest, or less. So neither can make a compaction fail.

use crate::compaction::{
    generations::Compaction,
    pins::{self, PinKind},
    plan::CompactionInput,
    policy::Policy,
    prompts::{Candidates, Selection},
};

/// Limit of the rounds. Fewer prompts leave more pins to the summary, which then leaves less room to prompts. In the
/// last round all pins count for the summary, even those that prompts hold.
const ROUNDS: usize = 4;

pub(super) struct Division {
    pub(super) prompts: Selection,
    pub(super) pins: pins::Selection,
    pub(super) summary_max_tokens: u64,
}

/// The room beside the turns that stay.
#[derive(Clone, Copy)]
pub(super) struct SummaryRoom {
    pub(super) tokens: u64,
    pub(super) summary_min_tokens: u64,
    pub(super) summary_max_tokens: u64,
}

impl SummaryRoom {
    /// Returns the room for what is recorded beside a reference and not shown: the next summary needs all of it.
    pub(super) fn recorded(scene: &CompactionInput<'_>) -> Self {
        let summary_max_tokens = Policy::summary_max_tokens(scene.budget.window_tokens());
        let tokens = summary_max_tokens + share_tokens(scene);
        Self { tokens, summary_min_tokens: 0, summary_max_tokens }
    }
}

fn share_tokens(scene: &CompactionInput<'_>) -> u64 {
    scene.budget.window_tokens() * scene.policy.keep_prompts_percent / 100
}

/// Divides the room for `view.tail[..fold]` and for what earlier generations kept.
pub(super) fn divide(scene: &CompactionInput<'_>, fold: usize, room: SummaryRoom) -> Division {
    let calibration = scene.calibration;
    let share_tokens = share_tokens(scene);
    let candidates = Candidates::of(scene.view, fold, calibration.weight_within(share_tokens));
    let carried = scene.view.compaction.map_or(&[][..], |it: &Compaction| &it.pins);
    let mut pins = pins::collect(carried, &scene.view.tail[..fold]);
    candidates.carried_texts().for_each(|text| pins.read_person(text));
    pins.discard(|text, kind| {
        kind == PinKind::Requirement && candidates.is_requirement_revoked(text)
    });

    let mut max_tokens = share_tokens.min(room.tokens);
    let mut prompts = Selection::default();
    for round in 0..=ROUNDS {
        prompts = candidates.select(calibration.weight_within(max_tokens));
        let spared = (round < ROUNDS).then(|| prompts.haystack());
        let is_spared = |text: &str| spared.as_ref().is_some_and(|kept| kept.contains_text(text));
        let pins_tokens = pins.tokens(|text| !is_spared(text), calibration);
        let left = room.tokens.saturating_sub(summary_floor(scene, room, pins_tokens));
        if prompts.tokens(calibration) <= left {
            break;
        }
        max_tokens = left.min(max_tokens);
        if round == ROUNDS {
            prompts = candidates.select(calibration.weight_within(max_tokens));
        }
    }
    let kept = prompts.haystack();
    pins.discard(|text, _| kept.contains_text(text));
    let left = room.tokens.saturating_sub(prompts.tokens(calibration));
    let summary_max_tokens = left.min(room.summary_max_tokens);
    let pins = pins.select(Policy::pins_max_tokens(summary_max_tokens), calibration);
    Division { prompts, pins, summary_max_tokens }
}

/// Returns the size of a summary that holds these pins and some sentences.
fn summary_floor(scene: &CompactionInput<'_>, room: SummaryRoom, pins_tokens: u64) -> u64 {
    let prose = Policy::prose_tokens(scene.budget.window_tokens()) / 2;
    let pins = Policy::summary_for_pins(pins_tokens);
    let floor = room.summary_min_tokens.max(pins) + prose.min(room.tokens / 4);
    floor.min(room.summary_max_tokens)
}
