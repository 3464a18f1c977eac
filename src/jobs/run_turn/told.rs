//! What operators see of a turn: metrics, and a trace.
//!
//! The names of spans and attributes are OpenTelemetry's for generative AI. Texts of the conversation are not among them: the ids
//! are, and the texts are in the database.

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use sqlx::PgConnection;

use super::{Error, ending::Turn, ledger, settle::Fate};
use crate::{
    domain::{
        turns::{self, Begun},
        usage::Call,
    },
    jobs::Services,
    providers::Outcome,
    traces::{Context, Kind, Span, Value},
};

type Attributes = Vec<(&'static str, Value)>;

const DURATION: &str = "dalsegno_turn_duration_seconds";
const FIRST_BYTE: &str = "dalsegno_turn_first_byte_seconds";
const TOKENS: &str = "dalsegno_tokens_total";
const COST: &str = "dalsegno_cost_micros_total";

pub(in crate::jobs) fn describe() {
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "Calls of turns, by provider and what came of them."
    );
    describe_histogram!(
        FIRST_BYTE,
        Unit::Seconds,
        "From the call to the first of its answer, by provider."
    );
    describe_counter!(TOKENS, "Tokens that turns have used in this process, by model and type.");
    describe_counter!(COST, "What they cost, in millionths of the currency of [prices].");
}

/// Where spans are wanted, the one of the turn before, of which nothing is stored but its number and its session.
pub(super) async fn look_back(
    conn: &mut PgConnection,
    services: &Services,
    begun: &Begun,
) -> Result<Option<Context>, Error> {
    if !services.traces.are_wanted() {
        return Ok(None);
    }
    let session_id = turns::session_before(conn, begun).await.map_err(Error::undone)?;
    Ok(session_id.map(|session_id| Context::of_turn(session_id, begun.turn - 1)))
}

/// Once a turn has ended, whatever came of it.
pub(super) fn tell(turn: &Turn<'_>, fate: &Fate, began_at: DateTime<Utc>) {
    let outcome = ledger::outcome(fate, &turn.called.result);
    let lines = outcome.map_or_else(Vec::new, |outcome| {
        ledger::lines(turn.services, turn.assignment, turn.opened, turn.called, outcome)
    });
    measure(turn, fate, &lines);
    if turn.services.traces.are_wanted() {
        for span in spans(turn, fate, &lines, began_at) {
            turn.services.traces.record(span);
        }
    }
}

fn measure(turn: &Turn<'_>, fate: &Fate, lines: &[Call<'_>]) {
    let (called, provider) = (turn.called, turn.assignment.route.provider_name.clone());
    if !called.took.is_zero() {
        let labels = [("provider", provider.clone()), ("outcome", word(fate).to_owned())];
        histogram!(DURATION, &labels).record(called.took.as_secs_f64());
    }
    let first_byte = called.result.as_ref().ok().and_then(|outcome| outcome.durations.first_byte);
    if let Some(first_byte) = first_byte {
        histogram!(FIRST_BYTE, "provider" => provider.clone()).record(first_byte.as_secs_f64());
    }
    for line in lines {
        let labels = [("provider", provider.clone()), ("model", line.model.to_owned())];
        counter!(COST, &labels).increment(line.cost_micros.unsigned_abs());
        for (kind, n_tokens) in kinds(line) {
            let labels = [labels[0].clone(), labels[1].clone(), ("type", kind.to_owned())];
            counter!(TOKENS, &labels).increment(n_tokens.unsigned_abs());
        }
    }
}

fn kinds(line: &Call<'_>) -> impl Iterator<Item = (&'static str, i64)> {
    let tokens = line.tokens;
    let all = [
        ("input", tokens.input),
        ("output", tokens.output),
        ("cache_read", tokens.cache_read),
        ("cache_creation", tokens.cache_creation),
    ];
    all.into_iter().filter_map(|(kind, n_tokens)| n_tokens.map(|n_tokens| (kind, n_tokens)))
}

/// The job that ran, in it the agent, in it the call of the model.
fn spans(turn: &Turn<'_>, fate: &Fate, lines: &[Call<'_>], began_at: DateTime<Utc>) -> Vec<Span> {
    let (begun, now) = (&turn.opened.begun, turn.services.clock.now());
    let root = Context::of_turn(begun.session_id, begun.turn);
    let (agent, chat) = (root.sibling(), root.sibling());
    let answered_at = turn.called.called_at
        + TimeDelta::from_std(turn.called.took).unwrap_or_else(|_| TimeDelta::zero());
    let error = match &turn.called.result {
        Err(error) => Some(error.code.to_owned()),
        Ok(_) if *fate != Fate::Done => Some(word(fate).to_owned()),
        Ok(_) => None,
    };
    let span = |context, parent, name, kind, attributes| Span {
        context,
        parent,
        name,
        kind,
        started_at: turn.called.called_at,
        ended_at: answered_at,
        attributes,
        links: Vec::new(),
        error: error.clone(),
    };
    let Turn { assignment, .. } = turn;
    let names = [
        format!("invoke_agent {}", assignment.agent.name),
        format!("chat {}", assignment.route.model),
    ];
    let [invoke, call] = names;
    let root_span = Span {
        started_at: began_at,
        ended_at: now,
        links: links(turn),
        ..span(root, None, "process turns".to_owned(), Kind::Consumer, job(turn, fate))
    };
    let with_error = |mut attributes: Attributes| {
        attributes.extend(error.iter().map(|error| ("error.type", error.as_str().into())));
        attributes
    };
    vec![
        root_span,
        span(
            agent,
            Some(root.span),
            invoke,
            Kind::Internal,
            with_error(model(turn, "invoke_agent", lines)),
        ),
        span(chat, Some(agent.span), call, Kind::Client, with_error(model(turn, "chat", lines))),
    ]
}

/// Whoever asked for it, and the turn before.
fn links(turn: &Turn<'_>) -> Vec<Context> {
    let asked = turn.assignment.traceparent.as_deref().and_then(Context::parse);
    asked.into_iter().chain(turn.opened.before).collect()
}

fn job(turn: &Turn<'_>, fate: &Fate) -> Attributes {
    let begun = &turn.opened.begun;
    vec![
        ("messaging.system", "dalsegno".into()),
        ("messaging.operation.name", "process".into()),
        ("messaging.operation.type", "process".into()),
        ("messaging.destination.name", "turns".into()),
        ("messaging.message.id", turn.run.job_id().to_string().into()),
        ("gen_ai.conversation.id", begun.session_id.to_string().into()),
        ("dalsegno.task.id", begun.task_id.to_string().into()),
        ("dalsegno.campaign.id", begun.campaign_id.to_string().into()),
        ("dalsegno.turn", i64::from(begun.turn).into()),
        ("dalsegno.attempt", i64::from(turn.run.attempt()).into()),
        ("dalsegno.outcome", word(fate).into()),
    ]
}

/// The conversation's id is on every span: some products count what a conversation costs by it.
fn model(turn: &Turn<'_>, operation: &'static str, lines: &[Call<'_>]) -> Attributes {
    let Turn { assignment, opened, called, .. } = turn;
    let mut attributes: Attributes = vec![
        ("gen_ai.operation.name", operation.into()),
        ("gen_ai.provider.name", provider(&assignment.route.provider_name).into()),
        ("gen_ai.agent.name", assignment.agent.name.as_str().into()),
        ("gen_ai.conversation.id", opened.begun.session_id.to_string().into()),
        ("gen_ai.request.model", assignment.route.model.as_str().into()),
    ];
    let sum = |kind: &[&str]| -> Option<i64> {
        let all = lines.iter().flat_map(kinds).filter(|(name, _)| kind.contains(name));
        all.map(|(_, n_tokens)| n_tokens).reduce(i64::saturating_add)
    };
    // What came out of a cache is a part of the input there.
    let counts = [
        ("gen_ai.usage.input_tokens", sum(&["input", "cache_read", "cache_creation"])),
        ("gen_ai.usage.output_tokens", sum(&["output"])),
        ("gen_ai.usage.cache_read.input_tokens", sum(&["cache_read"])),
        ("gen_ai.usage.cache_creation.input_tokens", sum(&["cache_creation"])),
        (
            "dalsegno.cost_micros",
            lines.iter().map(|line| line.cost_micros).reduce(i64::saturating_add),
        ),
    ];
    attributes.extend(counts.into_iter().filter_map(|(key, n)| n.map(|n| (key, n.into()))));
    if let (Some(line), Ok(Outcome { provider_message_id, .. })) = (lines.first(), &called.result) {
        attributes.push(("gen_ai.response.model", line.model.into()));
        attributes.extend(
            provider_message_id.iter().map(|id| ("gen_ai.response.id", id.as_str().into())),
        );
    }
    attributes
}

/// As the conventions call them; ours else.
fn provider(name: &str) -> &str {
    match name {
        "claude" => "anthropic",
        name => name,
    }
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Done => "done",
        Fate::Cancelled => "cancelled",
        Fate::GivenBack => "given_back",
        Fate::Again { .. } => "again",
        Fate::PutOff { .. } => "put_off",
        Fate::Failed { .. } => "failed",
        Fate::NoRoom { .. } => "no_room",
        Fate::LeaseLost => "lease_lost",
    }
}
