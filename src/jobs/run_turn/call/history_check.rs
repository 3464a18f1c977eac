//! A check that a provider that keeps the conversation itself has seen it.
//!
//! The prompt count of a turn's first call has to include the history. A provider that has lost it answers anyway: only
//! this count shows the loss.

use crate::{
    context::{Checkpoint, Weight},
    jobs::run_turn::{begin::open_turn::OpenTurn, call::report::CallReport},
    providers::{Class, Error, Flag, Outcome, Provider, Rebuild, TurnStart},
    transcript::Message,
};

pub const FLAG: &str = "history_not_seen";

/// Tokens of a history below which a count cannot show its loss.
const HISTORY_MIN_TOKENS: u64 = 400;

#[derive(Debug, thiserror::Error)]
#[error(
    "the model counted {counted} tokens, but the conversation has about {expected}: it did not see its history"
)]
struct NotSeen {
    counted: u64,
    expected: u64,
}

/// The counts that a turn should show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExpectedCounts {
    with_history: u64,
    history: u64,
    /// True if it is based on the real count of an earlier turn.
    is_anchored: bool,
}

/// Replaces an answer without history by an error, once: if a rewritten conversation is still not seen, the answer is
/// flagged.
pub fn check_history_seen(
    provider: &dyn Provider,
    opened: &OpenTurn,
    called: CallReport,
) -> CallReport {
    let Ok(outcome) = &called.result else { return called };
    let Some(error) = unseen_history_error(opened, outcome) else { return called };
    let was_rewritten = began(outcome) == Some(TurnStart::Rewritten);
    if was_rewritten || !provider.refuses_unseen_history() {
        return CallReport { is_doubted: true, ..called };
    }
    CallReport { result: Err(error), ..called }
}

/// Returns the error for an answer without history. `None` if the counts include it, or cannot show it.
fn unseen_history_error(opened: &OpenTurn, outcome: &Outcome) -> Option<Error> {
    let continued = outcome.conversation.as_deref()?;
    // Counts are smaller than the history after a summary by the provider, and where tools were missing.
    let is_smaller = |flag: &Flag| {
        matches!(flag, Flag::Compacted | Flag::ServerMissing(_) | Flag::ToolMissing(_))
    };
    if continued.flags.iter().any(is_smaller) || continued.began == TurnStart::New {
        return None;
    }
    let (counted, expected) = (outcome.prompt_tokens()?, expected(opened));
    if sees_history(counted, expected) {
        return None;
    }
    let not_seen = NotSeen { counted, expected: expected.with_history };
    let class = Class::Rebuild { reason: Rebuild::Lost };
    let error = Error::new("claude.history_not_seen", class, not_seen);
    // Effects of tools stay, even if the answer is dropped.
    let error = error.with_usage(Some(outcome.usage)).with_spent(outcome.spent.clone());
    Some(error.with_has_acted(has_acted(&continued.messages)))
}

fn has_acted(said: &[Message]) -> bool {
    said.iter().any(|message| !message.tool_calls.is_empty())
}

fn began(outcome: &Outcome) -> Option<TurnStart> {
    outcome.conversation.as_deref().map(|continued| continued.began)
}

/// Estimates from the last real count, plus half of the weight since. The learnt factor does not apply: counts include
/// the definitions of tools and weights do not, so in a short conversation it is many times too large.
fn expected(opened: &OpenTurn) -> ExpectedCounts {
    let anchor = opened.session.checkpoint.clone();
    let anchor: Option<Checkpoint> = anchor.and_then(|anchor| serde_json::from_value(anchor).ok());
    let around = opened.around.system + opened.around.upcoming;
    let before = anchor.map_or(Weight::ZERO, |anchor| anchor.weight);
    let (grown, shrunk) =
        (opened.weight.saturating_sub(before), before.saturating_sub(opened.weight));
    let counted = anchor.map_or(0, |anchor| anchor.real_tokens).saturating_add(tokens(grown) / 2);
    ExpectedCounts {
        with_history: counted.saturating_sub(tokens(shrunk) * 3 / 2),
        history: tokens(opened.weight.saturating_sub(around)),
        is_anchored: anchor.is_some(),
    }
}

fn tokens(weight: Weight) -> u64 {
    weight.millitokens() / 1000
}

/// Half of the history is enough: providers leave out their thinking, and old results of tools.
fn sees_history(counted: u64, expected: ExpectedCounts) -> bool {
    !expected.is_anchored
        || expected.history < HISTORY_MIN_TOKENS
        || counted >= expected.with_history.saturating_sub(expected.history / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Role, ToolCall};

    #[test]
    fn tool_effects_of_an_answer_without_memory_are_kept() {
        let said = |tool_calls: Vec<ToolCall>| Message {
            role: Role::Assistant,
            text: "I post it.".to_owned(),
            tool_calls,
            tool_call_id: None,
            tool_name: None,
        };
        let call = ToolCall {
            id: "call-1".to_owned(),
            name: "mcp__dalsegno__board_post".to_owned(),
            arguments: serde_json::Value::Null,
        };
        assert!(has_acted(&[said(vec![call]), said(Vec::new())]));
        assert!(!has_acted(&[said(Vec::new())]));
    }

    const EXPECTED: ExpectedCounts =
        ExpectedCounts { with_history: 9000, history: 6000, is_anchored: true };

    #[test]
    fn a_token_count_without_the_history_is_rejected_and_one_with_most_of_it_is_accepted() {
        assert!(sees_history(9000, EXPECTED));
        assert!(sees_history(6500, EXPECTED));
        assert!(!sees_history(3000, EXPECTED));
        assert!(sees_history(3000, ExpectedCounts { is_anchored: false, ..EXPECTED }));
        assert!(sees_history(100, ExpectedCounts { with_history: 450, history: 300, ..EXPECTED }));
    }
}
