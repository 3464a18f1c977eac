//! The line of a call in the ledger, and its manifest.

use std::{borrow::Cow, time::Duration};

use chrono::DateTime;
use serde_json::Value;

use super::{
    assignment::Assignment,
    begin::Opened,
    call::Called,
    rounds::{Asked, Rounds},
    settle::Fate,
};
use crate::{
    domain::{Amount, manifests, prices::Price, usage},
    jobs::Services,
    providers::{Class, Error, Outcome, Spent, Usage},
};

/// How the ledger calls it; `None` for a call that was not made, or not taken. One that was put off in the middle is billed.
pub(super) fn outcome(fate: &Fate, result: &Result<Outcome, Error>) -> Option<usage::Outcome> {
    match (fate, result) {
        (Fate::Done, _) => Some(usage::Outcome::Done),
        (_, Err(error)) if error.is_unasked => None,
        (Fate::PutOff { .. }, Err(error)) if error.usage.is_none() => None,
        (_, Err(error)) if error.class == Class::Cancelled => Some(usage::Outcome::Interrupted),
        _ => Some(usage::Outcome::Failed),
    }
}

/// What goes into the ledger for a turn: each of its calls, in order.
pub(super) fn all<'a>(
    services: &'a Services,
    assignment: &'a Assignment<'_>,
    opened: &Opened,
    called: &'a Called,
    fate: &Fate,
) -> Vec<usage::Call<'a>> {
    let mut all = lines_of_rounds(assignment, opened, &called.rounds);
    if let Some(outcome) = outcome(fate, &called.result) {
        all.extend(lines(services, assignment, opened, called, outcome));
    }
    all
}

/// The calls before the last one.
pub(super) fn lines_of_rounds<'a>(
    assignment: &'a Assignment<'_>,
    opened: &Opened,
    rounds: &'a Rounds,
) -> Vec<usage::Call<'a>> {
    let line = |asked: &'a Asked| {
        let tokens = tokens(asked.usage);
        usage::Call {
            provider_message_id: asked.provider_message_id.as_deref(),
            first_byte_ms: asked.first_byte.and_then(millis),
            total_ms: millis(asked.took),
            called_at: asked.called_at,
            ..blank(assignment, opened, tokens, usage::Outcome::Done)
        }
    };
    rounds.calls.iter().map(line).collect()
}

/// What goes into the ledger for a call that was really made: one line, or one for each model where the provider has asked
/// several and says so.
pub(super) fn lines<'a>(
    services: &'a Services,
    assignment: &'a Assignment<'_>,
    opened: &Opened,
    called: &'a Called,
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
    let of_model = |(at, spent): (usize, &'a Spent)| {
        let configured = services.price(whole.provider, &spent.model);
        usage::Call {
            model: &spent.model,
            tokens: tokens(spent.usage),
            cost_micros: cost_micros(configured, spent),
            price: configured.map(|price| Cow::Owned(price.frozen())),
            // It names the whole answer.
            provider_message_id: whole.provider_message_id.filter(|_| at == 0),
            ..whole.clone()
        }
    };
    spent.iter().enumerate().map(of_model).collect()
}

/// What such lines add up to.
pub(super) fn amount(services: &Services, assignment: &Assignment<'_>, spent: &[Spent]) -> Amount {
    let of_model = |spent: &Spent| {
        let configured = services.price(&assignment.route.provider_name, &spent.model);
        Amount { micros: cost_micros(configured, spent), tokens: tokens(spent.usage).total() }
    };
    spent.iter().map(of_model).sum()
}

fn cost_micros(configured: Option<&Price>, spent: &Spent) -> i64 {
    let told = || spent.cost_micros.and_then(|micros| i64::try_from(micros).ok());
    match configured {
        Some(price) => price.cost_micros(tokens(spent.usage)),
        None => told().unwrap_or(0),
    }
}

fn line<'a>(
    assignment: &'a Assignment<'_>,
    opened: &Opened,
    called: &'a Called,
    outcome: usage::Outcome,
) -> usage::Call<'a> {
    let counted = match &called.result {
        Ok(outcome) => Some(outcome.usage),
        Err(error) => error.usage.as_deref().copied(),
    };
    let tokens = tokens(counted.unwrap_or_default());
    let answered = called.result.as_ref().ok();
    usage::Call {
        provider_message_id: answered.and_then(|answer| answer.provider_message_id.as_deref()),
        first_byte_ms: answered.and_then(|answer| answer.durations.first_byte).and_then(millis),
        total_ms: millis(called.took),
        called_at: called.called_at,
        ..blank(assignment, opened, tokens, outcome)
    }
}

/// A call of which only what it has used is known.
fn blank<'a>(
    assignment: &'a Assignment<'_>,
    opened: &Opened,
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
        price: route.price.map(|price| Cow::Owned(price.frozen())),
        first_byte_ms: None,
        total_ms: None,
        called_at: DateTime::UNIX_EPOCH,
    }
}

fn millis(time: Duration) -> Option<i32> {
    i32::try_from(time.as_millis()).ok()
}

pub(super) fn manifest<'a>(
    opened: &Opened,
    called: &Called,
    manifest: &'a Value,
) -> manifests::New<'a> {
    let counted = match &called.result {
        Ok(outcome) => outcome.prompt_tokens(),
        Err(error) => error.usage.as_ref().and_then(|usage| usage.prompt()),
    };
    manifests::New {
        session_id: opened.begun.session_id,
        turn: opened.begun.turn,
        call: place(called.rounds.calls.len()),
        manifest,
        sha256: *opened.manifest.sha256.as_bytes(),
        estimated_tokens: i64::try_from(opened.estimated_tokens).unwrap_or(i64::MAX),
        real_tokens: counted.and_then(|n| i64::try_from(n).ok()),
    }
}

/// The manifests of the calls before the last one, with their JSON.
pub(super) fn manifests_of_rounds(rounds: &Rounds) -> serde_json::Result<Vec<Value>> {
    rounds.calls.iter().map(|asked| serde_json::to_value(&asked.manifest)).collect()
}

/// One of them.
pub(super) fn manifest_of_round<'a>(
    opened: &Opened,
    (at, asked): (usize, &Asked),
    manifest: &'a Value,
) -> manifests::New<'a> {
    manifests::New {
        session_id: opened.begun.session_id,
        turn: opened.begun.turn,
        call: place(at),
        manifest,
        sha256: *asked.manifest.sha256.as_bytes(),
        estimated_tokens: i64::try_from(asked.estimated_tokens).unwrap_or(i64::MAX),
        real_tokens: asked.usage.prompt().and_then(|n| i64::try_from(n).ok()),
    }
}

fn place(call: usize) -> i16 {
    i16::try_from(call).unwrap_or(i16::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Scope;

    #[test]
    fn what_was_put_off_is_billed_if_it_was_used() {
        let after = Duration::from_secs(1);
        let fate = Fate::PutOff { why: "busy".to_owned(), after };
        let busy = || Error::new("test", Class::Snooze { after, scope: Scope::Credential }, "busy");
        assert_eq!(outcome(&fate, &Err(busy())), None);
        let used = busy().with_usage(Some(Usage { input: Some(9), ..Usage::default() }));
        assert_eq!(outcome(&fate, &Err(used)), Some(usage::Outcome::Failed));
    }

    #[test]
    fn a_call_that_was_not_made_has_no_line() {
        let why = "no program".to_owned();
        let fate = Fate::Failed { why, interrupted: false, rejected: false };
        let failed = || Error::new("test", Class::Fail, "no program");
        assert_eq!(outcome(&fate, &Err(failed().not_made())), None);
        assert_eq!(outcome(&fate, &Err(failed())), Some(usage::Outcome::Failed));
    }
}
