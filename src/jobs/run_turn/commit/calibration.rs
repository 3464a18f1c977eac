//! Lessons from the counts of a call.

use serde_json::Value;

use super::{provider_session, turn::Turn};
use crate::{
    context::{Calibration, Checkpoint, Weight},
    domain::turns::HistoryCheck,
    jobs::run_turn::{begin::counts, call::history_check},
    providers::StopReason,
};

/// The lesson of an answer about the model's tokeniser.
pub struct Lesson {
    pub calibration: Calibration,
    pub calibration_json: Option<Value>,
    pub checkpoint_json: Option<Value>,
    /// Tokens of the window that the call occupied: counted, otherwise estimated. Never 0 after an answer: 0 means that
    /// the session has no answer yet, and would prevent its rollover and compaction for ever.
    pub context_tokens: u64,
    pub flags: Vec<String>,
}

/// Learns from a call, if it was answered.
pub fn learn(turn: &Turn<'_>) -> Lesson {
    let mut learnt = Lesson {
        calibration: turn.opened.calibration,
        calibration_json: None,
        checkpoint_json: None,
        context_tokens: 0,
        flags: Vec::new(),
    };
    let Ok(outcome) = &turn.called.result else { return learnt };
    // Counts of the others are checked below.
    let is_kept = turn.assignment.route.provider.holds_session();
    let is_doubted = is_kept && turn.called.history_check == HistoryCheck::NotSeen;
    let with_answer = |prompt_tokens: u64| {
        let answer = Weight::of_message(&outcome.message);
        let answer_tokens = learnt.calibration.tokens(answer);
        prompt_tokens.saturating_add(outcome.usage.output.unwrap_or(answer_tokens)).max(1)
    };
    learnt.context_tokens = with_answer(turn.opened.estimated_tokens);
    match outcome.stop {
        StopReason::End => {}
        StopReason::Length => learnt.flags.push("answer_cut_off".to_owned()),
        StopReason::ToolCalls => learnt.flags.push("tool_calls_unanswered".to_owned()),
    }
    if is_doubted {
        learnt.flags.push(history_check::FLAG.to_owned());
    }
    learnt.flags.extend(turn.called.rounds.flags.iter().cloned());
    let flags = outcome.conversation.iter().flat_map(|continued| &continued.flags);
    learnt.flags.extend(flags.map(provider_session::flag));
    let Some(real_tokens) = outcome.prompt_tokens() else { return learnt };
    let counted = Checkpoint { weight: turn.opened.weight, real_tokens };
    if is_doubted {
        // The next turn compares its counts with this one. Otherwise the same doubt would return for ever.
        learnt.checkpoint_json = serde_json::to_value(counted).ok();
        return learnt;
    }
    if !is_kept && learnt.calibration.looks_truncated(counted) {
        // The provider may not have read all of the prompt, so this count teaches nothing.
        learnt.flags.push("prompt_count_too_low".to_owned());
        return learnt;
    }
    // Of several calls, the last one includes everything that the others have added.
    learnt.context_tokens = outcome.context_tokens().unwrap_or_else(|| with_answer(real_tokens));
    learnt.calibration.observe(counted);
    learnt.calibration_json = serde_json::to_value(learnt.calibration).ok();
    learnt.checkpoint_json = counts::checkpoint(counted, turn.assignment);
    learnt
}
