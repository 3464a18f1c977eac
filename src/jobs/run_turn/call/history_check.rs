//! A check that the model has seen the history of its conversation.
//!
//! The prompt count of a turn's first call has to include the history. A provider that has lost it answers anyway: only
//! this count shows the loss.

use crate::{
    context::{Checkpoint, Weight},
    domain::turns::HistoryCheck,
    jobs::run_turn::{begin::open_turn::OpenTurn, call::report::CallReport},
    providers::{Class, Error, Flag, Outcome, Provider, Rebuild, TurnStart},
    transcript::Message,
};

pub const FLAG: &str = "history_not_seen";

/// Tokens of a history below which a low count does not prove its loss: estimates and thinking differ by as much.
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
    /// The least with the history.
    with_history: u64,
    /// The most without it.
    without_history: u64,
    history: u64,
}

/// Compares the counts with the history. Replaces an answer without history by an error, once: if a rewritten
/// conversation is still not seen, the answer is flagged.
pub fn check_history_seen(
    provider: &dyn Provider,
    opened: &OpenTurn,
    called: CallReport,
) -> CallReport {
    let Ok(outcome) = &called.result else { return called };
    let (history_check, not_seen) = check(opened, outcome);
    let is_refused =
        provider.refuses_unseen_history() && began(outcome) != Some(TurnStart::Rewritten);
    match (not_seen, outcome.conversation.as_deref()) {
        (Some(not_seen), Some(continued)) if is_refused => {
            let class = Class::Rebuild { reason: Rebuild::Lost };
            let error = Error::new("claude.history_not_seen", class, not_seen);
            // Effects of tools stay, even if the answer is dropped.
            let error = error.with_usage(Some(outcome.usage)).with_spent(outcome.spent.clone());
            let error = error.with_has_acted(has_acted(&continued.messages));
            CallReport { result: Err(error), history_check, ..called }
        }
        _ => CallReport { history_check, ..called },
    }
}

fn check(opened: &OpenTurn, outcome: &Outcome) -> (HistoryCheck, Option<NotSeen>) {
    // Counts are smaller than the history after a summary by the provider, and where tools were missing.
    let is_smaller = |flag: &Flag| {
        matches!(flag, Flag::Compacted | Flag::ServerMissing(_) | Flag::ToolMissing(_))
    };
    let flags = outcome.conversation.iter().flat_map(|continued| &continued.flags);
    if tokens(history(opened)) == 0 || began(outcome) == Some(TurnStart::New) {
        return (HistoryCheck::NoHistory, None);
    }
    let counted = outcome.prompt_tokens().filter(|_| !flags.into_iter().any(is_smaller));
    let (Some(counted), Some(expected)) = (counted, expected(opened)) else {
        return (HistoryCheck::NotProvable, None);
    };
    let check = expected.check(counted);
    let not_seen = NotSeen { counted, expected: expected.with_history };
    (check, (check == HistoryCheck::NotSeen).then_some(not_seen))
}

fn has_acted(said: &[Message]) -> bool {
    said.iter().any(|message| !message.tool_calls.is_empty())
}

fn began(outcome: &Outcome) -> Option<TurnStart> {
    outcome.conversation.as_deref().map(|continued| continued.began)
}

/// Estimates from the last real count, and from half to twice of the weight since. The learnt factor does not apply:
/// counts include the definitions of tools and weights do not, so in a short conversation it is many times too large.
/// `None` without a real count.
fn expected(opened: &OpenTurn) -> Option<ExpectedCounts> {
    let anchor = opened.session.checkpoint.clone()?;
    let anchor: Checkpoint = serde_json::from_value(anchor).ok()?;
    let grown = tokens(opened.weight.saturating_sub(anchor.weight));
    // The files of the task may have far fewer tokens than they are estimated at.
    let without_files = opened.weight.saturating_sub(opened.task_files_weight);
    let least_grown = tokens(without_files.saturating_sub(anchor.weight));
    let shrunk = tokens(anchor.weight.saturating_sub(opened.weight));
    let history = tokens(history(opened));
    let with_history =
        anchor.real_tokens.saturating_add(least_grown / 2).saturating_sub(shrunk * 3 / 2);
    let without_history = anchor.real_tokens.saturating_add(grown * 2);
    let without_history = without_history.saturating_sub(shrunk / 2).saturating_sub(history / 2);
    Some(ExpectedCounts { with_history, without_history, history })
}

/// The weight of everything between the system part and the entries of this turn.
fn history(opened: &OpenTurn) -> Weight {
    opened.weight.saturating_sub(opened.around.system + opened.around.upcoming)
}

fn tokens(weight: Weight) -> u64 {
    weight.millitokens() / 1000
}

impl ExpectedCounts {
    /// Half of the history is enough: providers leave out their thinking, and old results of tools.
    fn check(self, counted: u64) -> HistoryCheck {
        if counted > self.without_history {
            return HistoryCheck::Seen;
        }
        let is_long = self.history >= HISTORY_MIN_TOKENS;
        match is_long && counted < self.with_history.saturating_sub(self.history / 2) {
            true => HistoryCheck::NotSeen,
            false => HistoryCheck::NotProvable,
        }
    }
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
            media: Vec::new(),
        };
        let call = ToolCall {
            id: "call-1".to_owned(),
            name: "mcp__dalsegno__board_post".to_owned(),
            arguments: serde_json::Value::Null,
            thinking: None,
        };
        assert!(has_acted(&[said(vec![call]), said(Vec::new())]));
        assert!(!has_acted(&[said(Vec::new())]));
    }

    /// 9,000 tokens, of which 6,000 are history; the prompt has 200.
    const EXPECTED: ExpectedCounts =
        ExpectedCounts { with_history: 9100, without_history: 6400, history: 6000 };

    #[test]
    fn a_token_count_without_the_history_is_rejected_and_one_with_most_of_it_is_accepted() {
        assert_eq!(EXPECTED.check(9200), HistoryCheck::Seen);
        assert_eq!(EXPECTED.check(6500), HistoryCheck::Seen);
        assert_eq!(EXPECTED.check(6300), HistoryCheck::NotProvable);
        assert_eq!(EXPECTED.check(3000), HistoryCheck::NotSeen);
    }

    #[test]
    fn a_short_history_is_never_missed_but_can_be_proved() {
        let short = ExpectedCounts { with_history: 1_000, without_history: 900, history: 300 };
        assert_eq!(short.check(950), HistoryCheck::Seen);
        assert_eq!(short.check(100), HistoryCheck::NotProvable);
    }

    #[test]
    fn a_prompt_longer_than_the_history_proves_nothing() {
        let long = ExpectedCounts { with_history: 6_000, without_history: 11_000, history: 2_000 };
        assert_eq!(long.check(8_000), HistoryCheck::NotProvable);
    }
}
