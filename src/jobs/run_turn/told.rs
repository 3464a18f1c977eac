//! What operators see of a turn: metrics, and a trace.
//!
//! The names of spans and attributes are OpenTelemetry's for generative AI. Texts of the conversation are not among them: the ids
//! are, and the texts are in the database.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use sqlx::PgConnection;

use super::{Error, call::Called, ending::Turn, ledger, rounds::Used, settle::Fate};
use crate::{
    domain::{turn_phases, turn_phases::Begun, usage::Call},
    jobs::Services,
    providers::Outcome,
    traces::{Context, Kind, Span, Value},
};

type Attributes = Vec<(&'static str, Value)>;

const DURATION: &str = "dalsegno_turn_duration_seconds";
const FIRST_BYTE: &str = "dalsegno_turn_first_byte_seconds";
const TOKENS: &str = "dalsegno_tokens_total";
const COST: &str = "dalsegno_cost_micros_total";
const TOOLS: &str = "dalsegno_turn_tool_duration_seconds";

/// Outcomes of calls: every [`word`].
const OUTCOMES: [&str; 8] =
    ["done", "cancelled", "given_back", "again", "put_off", "failed", "no_room", "lease_lost"];

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
    describe_counter!(
        TOKENS,
        "Tokens that turns have used in this process, by type and the model that was asked for."
    );
    describe_counter!(COST, "What they cost, in millionths of the currency of [prices].");
    describe_histogram!(
        TOOLS,
        Unit::Seconds,
        "Calls of tools between the calls of a turn, by tool and what came of them."
    );
}

/// Begins the metrics of the models that agents name. An alert on a counter that appears with its first event misses that event.
pub(in crate::jobs) fn begin(services: &Services) {
    for agent in services.library.current().agents() {
        let fallback = agent.fallback.as_ref().map(|fallback| services.fallback_route(fallback));
        for (provider, model) in [Some(services.route(agent)), fallback].into_iter().flatten() {
            if let Some(model) = model {
                begin_model(provider.as_str(), &model);
            }
        }
    }
}

/// Begins the metrics of a model that an agent file names: it may have come after the process had started.
pub(super) fn begin_model(provider: &str, model: &str) {
    let provider = provider.to_owned();
    drop(histogram!(FIRST_BYTE, "provider" => provider.clone()));
    for outcome in OUTCOMES {
        drop(histogram!(DURATION, "provider" => provider.clone(), "outcome" => outcome));
    }
    let labels = [("provider", provider), ("model", model.to_owned())];
    counter!(COST, &labels).increment(0);
    for kind in ["input", "output", "cache_read", "cache_creation"] {
        counter!(TOKENS, &tokens_labels(&labels, kind)).increment(0);
    }
}

fn tokens_labels(labels: &[(&'static str, String); 2], kind: &str) -> [(&'static str, String); 3] {
    let [provider, model] = labels.clone();
    [provider, model, ("type", kind.to_owned())]
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
    let session_id = turn_phases::session_before(conn, begun).await.map_err(Error::undone)?;
    Ok(session_id.map(|session_id| Context::of_turn(session_id, begun.turn - 1)))
}

/// Once a turn has ended, whatever came of it.
pub(super) fn tell(turn: &Turn<'_>, fate: &Fate, began_at: DateTime<Utc>) {
    let lines = ledger::all(turn.services, turn.assignment, turn.opened, turn.called, fate);
    measure(turn, fate, &lines);
    if turn.services.traces.are_wanted() {
        for span in spans(turn, fate, &lines, began_at) {
            turn.services.traces.record(span);
        }
    }
}

fn measure(turn: &Turn<'_>, fate: &Fate, lines: &[Call<'_>]) {
    let (called, provider) = (turn.called, turn.assignment.route.provider_name.clone());
    let took = duration(called);
    if !took.is_zero() {
        let labels = [("provider", provider.clone()), ("outcome", word(fate).to_owned())];
        histogram!(DURATION, &labels).record(took.as_secs_f64());
    }
    for used in &called.rounds.tools {
        // What a model has made up is no label: there is no end of it.
        let tool = if used.is_offered { used.name.as_str() } else { "unknown" };
        let labels = [("tool", tool.to_owned()), ("outcome", used.outcome.as_str().to_owned())];
        histogram!(TOOLS, &labels).record(used.took.as_secs_f64());
    }
    let first_byte = called.result.as_ref().ok().and_then(|outcome| outcome.durations.first_byte);
    if let Some(first_byte) = first_byte {
        histogram!(FIRST_BYTE, "provider" => provider.clone()).record(first_byte.as_secs_f64());
    }
    // By the requested model, not by the provider's names: the requested ones are known before the call.
    let labels = [("provider", provider), ("model", turn.assignment.route.model.clone())];
    for line in lines {
        counter!(COST, &labels).increment(line.cost_micros.unsigned_abs());
        for (kind, n_tokens) in kinds(line) {
            counter!(TOKENS, &tokens_labels(&labels, kind)).increment(n_tokens.unsigned_abs());
        }
    }
}

/// All calls of a turn, and what its tools did in between.
fn duration(called: &Called) -> Duration {
    let calls = called.rounds.calls.iter().map(|asked| asked.took);
    let tools = called.rounds.tools.iter().map(|used| used.took);
    calls.chain(tools).sum::<Duration>() + called.took
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

/// The job that ran, in it the agent, in it the calls of the model and of its tools.
fn spans(turn: &Turn<'_>, fate: &Fate, lines: &[Call<'_>], began_at: DateTime<Utc>) -> Vec<Span> {
    let (begun, now, called) = (&turn.opened.begun, turn.services.clock.now(), turn.called);
    let root = Context::of_turn(begun.session_id, begun.turn);
    let agent = root.sibling();
    let rounds = &called.rounds;
    let error = match &called.result {
        Err(error) => Some(error.code.to_owned()),
        Ok(_) if *fate != Fate::Done => Some(word(fate).to_owned()),
        Ok(_) => None,
    };
    let called_at = rounds.calls.first().map_or(called.called_at, |first| first.called_at);
    let child = |name, kind, (from, took): (DateTime<Utc>, Duration), attributes| Span {
        context: root.sibling(),
        parent: Some(agent.span),
        name,
        kind,
        started_at: from,
        ended_at: after(from, took),
        attributes,
        links: Vec::new(),
        error: None,
    };
    let chat = || format!("chat {}", turn.assignment.route.model);
    let with_error = |mut span: Span, error: Option<String>| {
        span.attributes.extend(error.iter().map(|error| ("error.type", error.as_str().into())));
        Span { error, ..span }
    };
    let (before, last) = lines.split_at(rounds.calls.len().min(lines.len()));
    let mut spans = vec![
        Span {
            context: root,
            parent: None,
            started_at: began_at,
            ended_at: now,
            links: links(turn),
            error: error.clone(),
            ..child(
                "process turns".to_owned(),
                Kind::Consumer,
                (now, Duration::ZERO),
                job(turn, fate),
            )
        },
        with_error(
            Span {
                context: agent,
                parent: Some(root.span),
                ended_at: after(called.called_at, called.took),
                ..child(
                    format!("invoke_agent {}", turn.assignment.agent.name),
                    Kind::Internal,
                    (called_at, Duration::ZERO),
                    model(turn, "invoke_agent", lines),
                )
            },
            error.clone(),
        ),
    ];
    spans.extend(rounds.calls.iter().zip(before).map(|(asked, line)| {
        let attributes = model(turn, "chat", std::slice::from_ref(line));
        child(chat(), Kind::Client, (asked.called_at, asked.took), attributes)
    }));
    spans.extend(rounds.tools.iter().map(|used| {
        let error = used.outcome.is_error().then(|| used.outcome.as_str().to_owned());
        let name = format!("execute_tool {}", used.name);
        let span = child(name, Kind::Internal, (used.called_at, used.took), tool(turn, used));
        with_error(span, error)
    }));
    // Where a turn was stopped between two calls, there is no last one.
    let is_made = called.result.as_ref().map_or_else(|error| !error.is_unasked, |_| true);
    if is_made || rounds.calls.is_empty() {
        let span =
            child(chat(), Kind::Client, (called.called_at, called.took), model(turn, "chat", last));
        spans.push(with_error(span, error));
    }
    spans
}

fn after(from: DateTime<Utc>, took: Duration) -> DateTime<Utc> {
    from + TimeDelta::from_std(took).unwrap_or_else(|_| TimeDelta::zero())
}

fn tool(turn: &Turn<'_>, used: &Used) -> Attributes {
    vec![
        ("gen_ai.operation.name", "execute_tool".into()),
        ("gen_ai.tool.name", used.name.as_str().into()),
        ("gen_ai.tool.call.id", used.call_id.as_str().into()),
        ("gen_ai.tool.type", "function".into()),
        ("gen_ai.agent.name", turn.assignment.agent.name.as_str().into()),
        ("gen_ai.conversation.id", turn.opened.begun.session_id.to_string().into()),
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
