//! Whether a provider that keeps the conversation itself has really seen it.
//!
//! The count of the first call of a turn has to hold the history. A provider that lost it answers all the same, in good
//! faith and without a memory: nothing but this count gives it away.

use crate::{
    context::{Checkpoint, Weight},
    jobs::run_turn::{begin::open_turn::OpenTurn, call::report::CallReport},
    providers::{Began, Class, Error, Flag, Outcome, Provider, Rebuild},
    transcript::Message,
};

pub const FLAG: &str = "history_not_seen";

/// Below this the history is too small to be missed in a count.
const HISTORY_MIN_TOKENS: u64 = 400;

#[derive(Debug, thiserror::Error)]
#[error(
    "the model counted {counted} tokens where the conversation has about {expected}: it did not see its history"
)]
struct NotSeen {
    counted: u64,
    expected: u64,
}

/// What the counts of a turn have to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    with_history: u64,
    history: u64,
    /// A real count of an earlier turn stands behind it.
    is_anchored: bool,
}

/// Puts an error in the place of an answer without memory, once: what was written anew from our own messages and is still
/// not seen is flagged.
pub fn judge(provider: &dyn Provider, opened: &OpenTurn, called: CallReport) -> CallReport {
    let Ok(outcome) = &called.result else { return called };
    let Some(error) = doubt(opened, outcome) else { return called };
    let was_rewritten = began(outcome) == Some(Began::Rewritten);
    if was_rewritten || !provider.refuses_unseen_history() {
        return CallReport { is_doubted: true, ..called };
    }
    CallReport { result: Err(error), ..called }
}

/// The error that stands for an answer without memory; `None` where there is no reason for doubt.
fn doubt(opened: &OpenTurn, outcome: &Outcome) -> Option<Error> {
    let continued = outcome.conversation.as_deref()?;
    // A summary of the provider's own is smaller than the history, and so is a count without tools that were not there.
    let is_smaller = |flag: &Flag| {
        matches!(flag, Flag::Compacted | Flag::ServerMissing(_) | Flag::ToolMissing(_))
    };
    if continued.flags.iter().any(is_smaller) || continued.began == Began::New {
        return None;
    }
    let (counted, expected) = (outcome.prompt_tokens()?, expected(opened));
    if sees_history(counted, expected) {
        return None;
    }
    let not_seen = NotSeen { counted, expected: expected.with_history };
    let class = Class::Rebuild { reason: Rebuild::Lost };
    let error = Error::new("claude.history_not_seen", class, not_seen);
    // What tools have done is done, whatever becomes of the answer.
    let error = error.with_usage(Some(outcome.usage)).with_spent(outcome.spent.clone());
    Some(error.having_acted(has_acted(&continued.messages)))
}

fn has_acted(said: &[Message]) -> bool {
    said.iter().any(|message| !message.tool_calls.is_empty())
}

fn began(outcome: &Outcome) -> Option<Began> {
    outcome.conversation.as_deref().map(|continued| continued.began)
}

/// The last real count, and what has come since at half of what it weighs. The learnt factor is not asked: the tools that the
/// model is offered are in the counts and not in the weights, so in a short conversation it is many times too large.
fn expected(opened: &OpenTurn) -> Expected {
    let anchor = opened.session.checkpoint.clone();
    let anchor: Option<Checkpoint> = anchor.and_then(|anchor| serde_json::from_value(anchor).ok());
    let around = opened.around.system + opened.around.upcoming;
    let before = anchor.map_or(Weight::ZERO, |anchor| anchor.weight);
    let (grown, shrunk) =
        (opened.weight.saturating_sub(before), before.saturating_sub(opened.weight));
    let counted = anchor.map_or(0, |anchor| anchor.real_tokens).saturating_add(tokens(grown) / 2);
    Expected {
        with_history: counted.saturating_sub(tokens(shrunk) * 3 / 2),
        history: tokens(opened.weight.saturating_sub(around)),
        is_anchored: anchor.is_some(),
    }
}

fn tokens(weight: Weight) -> u64 {
    weight.millitokens() / 1000
}

/// Half of the history is enough: providers leave out their thinking, and old results of tools.
fn sees_history(counted: u64, expected: Expected) -> bool {
    !expected.is_anchored
        || expected.history < HISTORY_MIN_TOKENS
        || counted >= expected.with_history.saturating_sub(expected.history / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Role, ToolCall};

    #[test]
    fn what_an_answer_without_memory_has_done_with_tools_is_done() {
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

    const EXPECTED: Expected = Expected { with_history: 9000, history: 6000, is_anchored: true };

    #[test]
    fn a_count_without_the_history_is_doubted_and_one_with_most_of_it_is_not() {
        assert!(sees_history(9000, EXPECTED));
        assert!(sees_history(6500, EXPECTED));
        assert!(!sees_history(3000, EXPECTED));
        assert!(sees_history(3000, Expected { is_anchored: false, ..EXPECTED }));
        assert!(sees_history(100, Expected { with_history: 450, history: 300, ..EXPECTED }));
    }
}
