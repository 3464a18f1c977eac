//! Ledger lines of calls.

use std::{borrow::Cow, time::Duration};

use chrono::DateTime;

use crate::{
    domain::{Amount, prices::Price, usage},
    jobs::{
        Services,
        run_turn::{
            begin::open_turn::OpenTurn,
            call::{
                report::CallReport,
                rounds::record::{ModelCall, Rounds},
            },
            load::assignment::Assignment,
        },
    },
    providers::{ModelSpend, Usage},
};

/// Builds the lines of the calls before the last one.
pub fn lines_of_rounds<'a>(
    assignment: &'a Assignment<'_>,
    opened: &OpenTurn,
    rounds: &'a Rounds,
) -> Vec<usage::Call<'a>> {
    let line = |asked: &'a ModelCall| {
        let tokens = tokens(asked.usage);
        let outcome = if asked.is_refused { usage::Outcome::Failed } else { usage::Outcome::Done };
        let line = usage::Call {
            provider_message_id: asked.provider_message_id.as_deref(),
            first_byte_ms: asked.first_byte.and_then(millis),
            total_ms: millis(asked.took),
            called_at: asked.called_at,
            ..blank(assignment, opened, tokens, outcome)
        };
        of_batch(assignment, line, asked.batch_call.as_deref())
    };
    rounds.calls.iter().map(line).collect()
}

/// Builds the lines of a call that was made: one, or one per model if the provider has called several and reports them.
pub fn lines<'a>(
    services: &'a Services,
    assignment: &'a Assignment<'_>,
    opened: &OpenTurn,
    called: &'a CallReport,
    outcome: usage::Outcome,
) -> Vec<usage::Call<'a>> {
    let whole = line(assignment, opened, called, outcome);
    let spent = match &called.result {
        Ok(outcome) => &outcome.spent,
        Err(error) => &error.spent,
    };
    if spent.is_empty() {
        return vec![whole];
    }
    let of_model = |(at, spent): (usize, &'a ModelSpend)| {
        let configured = services.price(whole.provider, &spent.model);
        usage::Call {
            model: &spent.model,
            tokens: tokens(spent.usage),
            cost_micros: cost_micros(configured, spent),
            price: configured.map(|price| Cow::Owned(price.to_ledger_json())),
            // The id names the whole answer.
            provider_message_id: whole.provider_message_id.filter(|_| at == 0),
            ..whole.clone()
        }
    };
    spent.iter().enumerate().map(of_model).collect()
}

/// Adds up the amounts of such lines.
pub fn sum_amounts(
    services: &Services,
    assignment: &Assignment<'_>,
    spent: &[ModelSpend],
) -> Amount {
    let of_model = |spent: &ModelSpend| {
        let configured = services.price(&assignment.route.provider_name, &spent.model);
        Amount { micros: cost_micros(configured, spent), tokens: tokens(spent.usage).total() }
    };
    spent.iter().map(of_model).sum()
}

fn cost_micros(configured: Option<&Price>, spent: &ModelSpend) -> i64 {
    let told = || spent.cost_micros.and_then(|micros| i64::try_from(micros).ok());
    match configured {
        Some(price) => price.cost_micros(tokens(spent.usage)),
        None => told().unwrap_or(0),
    }
}

fn line<'a>(
    assignment: &'a Assignment<'_>,
    opened: &OpenTurn,
    called: &'a CallReport,
    outcome: usage::Outcome,
) -> usage::Call<'a> {
    let counted = match &called.result {
        Ok(outcome) => Some(outcome.usage),
        Err(error) => error.usage.as_deref().copied(),
    };
    let tokens = tokens(counted.unwrap_or_default());
    let answered = called.result.as_ref().ok();
    let line = usage::Call {
        provider_message_id: answered.and_then(|answer| answer.provider_message_id.as_deref()),
        first_byte_ms: answered.and_then(|answer| answer.durations.first_byte).and_then(millis),
        total_ms: millis(called.took),
        called_at: called.called_at,
        ..blank(assignment, opened, tokens, outcome)
    };
    of_batch(assignment, line, called.batch_call.as_deref())
}

/// Sets the price of batches for a call that was sent as one. Our id of the call is in its line, so that it is charged once. Its time is
/// that of the batch, which says nothing about the model.
fn of_batch<'a>(
    assignment: &Assignment<'_>,
    line: usage::Call<'a>,
    batch_call: Option<&'a str>,
) -> usage::Call<'a> {
    if batch_call.is_none() {
        return line;
    }
    let price = assignment.route.price.map(Price::of_batches);
    usage::Call {
        provider_message_id: batch_call,
        cost_micros: price.as_ref().map_or(0, |price| price.cost_micros(line.tokens)),
        price: price.map(|price| Cow::Owned(price.to_ledger_json())),
        first_byte_ms: None,
        total_ms: None,
        ..line
    }
}

/// Builds the line of a call from its usage.
fn blank<'a>(
    assignment: &'a Assignment<'_>,
    opened: &OpenTurn,
    tokens: usage::Tokens,
    outcome: usage::Outcome,
) -> usage::Call<'a> {
    let route = &assignment.route;
    usage::Call {
        campaign_id: opened.begun.campaign_id,
        task_id: Some(opened.begun.task_id),
        session_id: Some(opened.begun.session_id),
        turn: Some(opened.begun.turn),
        agent: &assignment.agent.name,
        provider: &route.provider_name,
        model: &route.model,
        purpose: usage::Purpose::Turn,
        outcome,
        provider_message_id: None,
        tokens,
        cost_micros: route.price.map_or(0, |price| price.cost_micros(tokens)),
        price: route.price.map(|price| Cow::Owned(price.to_ledger_json())),
        first_byte_ms: None,
        total_ms: None,
        called_at: DateTime::UNIX_EPOCH,
    }
}

fn millis(time: Duration) -> Option<i32> {
    i32::try_from(time.as_millis()).ok()
}

fn tokens(usage: Usage) -> usage::Tokens {
    let count = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok());
    usage::Tokens {
        input: count(usage.input),
        output: count(usage.output),
        cache_read: count(usage.cache_read),
        cache_creation: count(usage.cache_creation),
    }
}
