//! The feed events for the end of a turn.

use serde_json::{Value, json};

use super::{fate::Fate, turn::Turn};
use crate::domain::{feed, task_files::NewFiles, text};

pub const INTERRUPTED_BY_DRAIN: &str = "the worker was stopped while the turn ran";
pub const INTERRUPTED_BY_CANCEL: &str = "the task was cancelled while the turn ran";

/// Returns the event for the end of the turn. If its task has failed at a budget, that of the refusal follows.
pub fn events(turn: &Turn<'_>, fate: &Fate, files: &NewFiles<'_>) -> Vec<feed::New> {
    let begun = &turn.opened.begun;
    let of = |(kind, data)| feed::New {
        campaign_id: Some(begun.campaign_id),
        task_id: Some(begun.task_id),
        session_id: Some(begun.session_id),
        kind,
        data,
    };
    let refused = match fate {
        Fate::Failed { why, refusal: Some(_), .. } => {
            let error = text::make_storable(why.clone());
            Some((feed::Kind::BudgetRefused, json!({ "error": error })))
        }
        _ => None,
    };
    [Some(end_of_turn(turn, fate, files)), refused].into_iter().flatten().map(of).collect()
}

fn end_of_turn(turn: &Turn<'_>, fate: &Fate, files: &NewFiles<'_>) -> (feed::Kind, Value) {
    let n = turn.opened.begun.turn;
    let because = |why: &str| text::make_storable(why.to_owned());
    match fate {
        Fate::Done => (feed::Kind::TurnDone, done_data(turn, files)),
        Fate::Cancelled => (
            feed::Kind::TurnInterrupted,
            json!({ "turn": n, "because": INTERRUPTED_BY_CANCEL, "again": false }),
        ),
        Fate::GivenBack | Fate::LeaseLost => (
            feed::Kind::TurnInterrupted,
            json!({ "turn": n, "because": INTERRUPTED_BY_DRAIN, "again": true }),
        ),
        Fate::Again { why, interrupted: true, .. } => (
            feed::Kind::TurnInterrupted,
            json!({ "turn": n, "because": because(why), "again": true }),
        ),
        Fate::Again { why, rebuild, .. } => (
            feed::Kind::TurnFailed,
            json!({ "turn": n, "error": because(why), "again": true, "rebuild": rebuild }),
        ),
        Fate::Correction { fault } => {
            (feed::Kind::TurnFailed, json!({ "turn": n, "error": because(fault), "again": true }))
        }
        Fate::NoRoom { why } => {
            (feed::Kind::TurnFailed, json!({ "turn": n, "error": because(why), "again": true }))
        }
        Fate::PutOff { why, after } => (
            feed::Kind::TurnSnoozed,
            json!({ "turn": n, "because": because(why), "again_after_secs": after.as_secs_f64() }),
        ),
        Fate::WaitsForBudget { refusal, .. } => (
            feed::Kind::TurnSnoozed,
            json!({ "turn": n, "because": because(&refusal.describe_wait()) }),
        ),
        Fate::Mismatch { why } => (
            feed::Kind::TurnFailed,
            json!({ "turn": n, "error": because(why), "again": false, "rejected": false }),
        ),
        Fate::Failed { why, rejected, .. } => (
            feed::Kind::TurnFailed,
            json!({ "turn": n, "error": because(why), "again": false, "rejected": rejected }),
        ),
    }
}

fn done_data(turn: &Turn<'_>, files: &NewFiles<'_>) -> Value {
    let answered = turn.called.result.as_ref().ok();
    let (usage, rounds) = (turn.called.usage(), &turn.called.rounds);
    let continued = answered.and_then(|outcome| outcome.conversation.as_deref());
    let mut data = json!({
        "turn": turn.opened.begun.turn,
        "input_tokens": usage.prompt(),
        "output_tokens": usage.output,
        "calls": continued.is_none().then_some(rounds.calls.len() + 1),
        "tools": continued.is_none().then_some(rounds.tools.len()),
        "began": continued.map(|continued| continued.began),
        "ahead": continued.map(|continued| continued.was_ahead),
    });
    if let Some(value) = turn.structured.value() {
        data["result_json"] = value.clone();
    }
    if files.n_files() > 0 {
        data["files"] = files.n_files().into();
    }
    data
}
