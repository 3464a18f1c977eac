//! Thinking in requests: how much of it a call asks for, and the signed blocks that go back to the model.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    providers::{Think, endpoint::ThinkingModes},
    transcript::ToolCall,
};

/// Signed thinking before a call of a tool, as it is stored with the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SignedThinking {
    /// Digest of the prompt that was answered.
    prefix: String,
    /// Bytes of the answer's text before the call.
    text_bytes: usize,
    /// Blocks since the call before, each with the number of bytes of text before it.
    blocks: Vec<(Value, usize)>,
}

/// Fields of a request for the amount of thinking.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ThinkingFields {
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<&'static str>,
    /// True if the model will think because of these fields.
    pub(super) is_on: bool,
}

/// Minimum budget that the API accepts.
const MIN_BUDGET_TOKENS: u32 = 1024;
/// Parts of the names of models that think within a budget only.
const WITH_BUDGET: [&str; 9] = [
    "claude-3",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2025",
    "opus-4-5",
    "sonnet-4-0",
    "sonnet-4-2025",
    "sonnet-4-5",
    "haiku-4-5",
];
/// Part of the names of models that accept a budget and decide themselves, too.
const WITH_BOTH: &str = "-4-6";
/// Parts of the names of models that always think.
const ALWAYS_ON: [&str; 3] = ["fable", "mythos", "opus-5"];

impl SignedThinking {
    pub(super) fn new(prefix: &str, text_bytes: usize, blocks: Vec<(Value, usize)>) -> Self {
        Self { prefix: prefix.to_owned(), text_bytes, blocks }
    }

    /// Returns the thinking of a call, if it was signed after this prefix and for this text.
    pub(super) fn of(call: &ToolCall, prefix: Option<&str>, text: &str) -> Option<Self> {
        let signed = Self::deserialize(call.thinking.as_ref()?).ok()?;
        let fits = |n_bytes: usize| text.is_char_boundary(n_bytes);
        let fits_all = fits(signed.text_bytes) && signed.blocks.iter().all(|(_, at)| fits(*at));
        (Some(signed.prefix.as_str()) == prefix && fits_all).then_some(signed)
    }

    pub(super) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = (&Value, usize)> {
        self.blocks.iter().map(|(block, text_bytes)| (block, *text_bytes))
    }
}

impl ThinkingModes {
    /// Guesses the modes of a model that the server does not describe.
    pub(super) fn of_name(model: &str) -> Self {
        let has = |part: &str| model.contains(part);
        let is_other = !has("claude");
        let both = has(WITH_BOTH);
        let budget = is_other || both || WITH_BUDGET.into_iter().any(has);
        let adaptive = both || !budget;
        Self { adaptive, budget, off: !ALWAYS_ON.into_iter().any(has), effort: adaptive }
    }

    /// Returns true if calls may set temperature and `top_p`. Models that think only as they decide refuse them.
    pub(super) fn takes_sampling(self) -> bool {
        self.budget || !self.adaptive
    }
}

impl ThinkingFields {
    pub(super) fn new(think: Option<Think>, modes: ThinkingModes, max_tokens: u32) -> Self {
        let thinks = |thinking| Self { thinking: Some(thinking), effort: None, is_on: true };
        match think {
            None => Self::default(),
            Some(Think::Off) if modes.off => {
                Self { thinking: Some(json!({ "type": "disabled" })), ..Self::default() }
            }
            Some(Think::Off) => Self { effort: modes.effort.then_some("low"), ..Self::default() },
            Some(think) if modes.adaptive => Self {
                effort: effort(think).filter(|_| modes.effort),
                ..thinks(json!({ "type": "adaptive" }))
            },
            Some(think) if modes.budget => match budget_tokens(think, max_tokens) {
                Some(n) => thinks(json!({ "type": "enabled", "budget_tokens": n })),
                None => Self::default(),
            },
            Some(_) => Self::default(),
        }
    }
}

fn effort(think: Think) -> Option<&'static str> {
    match think {
        Think::Low => Some("low"),
        Think::Medium => Some("medium"),
        Think::High => Some("high"),
        Think::Off | Think::On => None,
    }
}

/// Returns the part of the answer's limit that the model may think with. `None`: the limit is too small.
fn budget_tokens(think: Think, max_tokens: u32) -> Option<u32> {
    let quarters = match think {
        Think::Off | Think::Low => 1,
        Think::On | Think::Medium => 2,
        Think::High => 3,
    };
    let budget = (max_tokens / 4).saturating_mul(quarters).max(MIN_BUDGET_TOKENS);
    (budget < max_tokens).then_some(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_of_a_model_follow_from_its_name() {
        let modes = |model| {
            let ThinkingModes { adaptive, budget, off, .. } = ThinkingModes::of_name(model);
            (adaptive, budget, off)
        };
        assert_eq!(modes("claude-sonnet-4-5-20250929"), (false, true, true));
        assert_eq!(modes("claude-opus-4-6"), (true, true, true));
        assert_eq!(modes("claude-opus-4-8"), (true, false, true));
        assert_eq!(modes("claude-fable-5-1"), (true, false, false));
        assert_eq!(modes("kimi-k2"), (false, true, true));
        assert!(!ThinkingModes::of_name("claude-opus-4-8").takes_sampling());
        assert!(ThinkingModes::of_name("claude-haiku-4-5").takes_sampling());
    }

    #[test]
    fn the_budget_is_a_part_of_the_reserve() {
        assert_eq!(budget_tokens(Think::Low, 8192), Some(2048));
        assert_eq!(budget_tokens(Think::High, 8192), Some(6144));
        assert_eq!(budget_tokens(Think::Low, 2048), Some(1024));
        assert_eq!(budget_tokens(Think::High, 1024), None);
    }

    #[test]
    fn a_level_is_an_effort_where_the_model_decides() {
        let modes = ThinkingModes::of_name("claude-sonnet-5-5");
        let fields = ThinkingFields::new(Some(Think::High), modes, 512);
        assert_eq!(fields.thinking, Some(json!({ "type": "adaptive" })));
        assert_eq!((fields.effort, fields.is_on), (Some("high"), true));
        let always = ThinkingModes::of_name("claude-fable-5-1");
        let off = ThinkingFields::new(Some(Think::Off), always, 512);
        assert_eq!((off.thinking, off.effort), (None, Some("low")));
    }
}
