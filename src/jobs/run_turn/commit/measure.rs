//! Metrics and trace of a turn that has ended.

use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::{counter, histogram};

use crate::{
    domain::usage::Call,
    jobs::run_turn::{
        call::report::CallReport,
        commit::{
            fate::Fate,
            ledger,
            spans::{kinds, spans},
            turn::Turn,
        },
        metrics::{COST, DURATION, FIRST_BYTE, TOKENS, TOOLS, tokens_labels},
    },
};

/// Records metrics and spans of a turn, with any fate.
pub fn record_turn(turn: &Turn<'_>, fate: &Fate, began_at: DateTime<Utc>) {
    let lines = ledger::all_lines(turn.services, turn.assignment, turn.opened, turn.called, fate);
    measure(turn, fate, &lines);
    if turn.services.traces.is_enabled() {
        for span in spans(turn, fate, &lines, began_at) {
            turn.services.traces.record(span);
        }
    }
}

fn measure(turn: &Turn<'_>, fate: &Fate, lines: &[Call<'_>]) {
    let (called, provider) = (turn.called, turn.assignment.route.provider_name.clone());
    let took = duration(called);
    if !took.is_zero() {
        let labels = [("provider", provider.clone()), ("outcome", fate.as_str().to_owned())];
        histogram!(DURATION.name, &labels).record(took.as_secs_f64());
    }
    for used in &called.rounds.tools {
        // Names that a model has made up are unbounded, so they are not labels.
        let tool = if used.is_offered { used.name.as_str() } else { "unknown" };
        let labels = [("tool", tool.to_owned()), ("outcome", used.outcome.as_str().to_owned())];
        histogram!(TOOLS.name, &labels).record(used.took.as_secs_f64());
    }
    let first_byte = called.result.as_ref().ok().and_then(|outcome| outcome.durations.first_byte);
    if let Some(first_byte) = first_byte {
        histogram!(FIRST_BYTE.name, "provider" => provider.clone())
            .record(first_byte.as_secs_f64());
    }
    // By the requested model instead of the provider's name for it: requested models are known before the call.
    let labels = [("provider", provider), ("model", turn.assignment.route.model.clone())];
    for line in lines {
        counter!(COST.name, &labels).increment(line.cost_micros.unsigned_abs());
        for (kind, n_tokens) in kinds(line) {
            counter!(TOKENS.name, &tokens_labels(&labels, kind)).increment(n_tokens.unsigned_abs());
        }
    }
}

/// Adds up the time of all calls and tools of a turn.
fn duration(called: &CallReport) -> Duration {
    let calls = called.rounds.calls.iter().map(|asked| asked.took);
    let tools = called.rounds.tools.iter().map(|used| used.took);
    calls.chain(tools).sum::<Duration>() + called.took
}
