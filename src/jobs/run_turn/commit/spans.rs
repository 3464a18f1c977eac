//! The trace of a turn.
//!
//! Names of spans and attributes follow OpenTelemetry's conventions for generative AI. They contain ids, and no text of
//! the conversation.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    domain::usage::Call,
    jobs::run_turn::{
        call::rounds::record::ToolUse,
        commit::{fate::Fate, turn::Turn},
    },
    providers::Outcome,
    traces::{Context, Kind, Span, Value},
};

type Attributes = Vec<(&'static str, Value)>;

/// Builds the spans: the job, in it the agent, in it the calls of the model and of tools.
pub fn spans(
    turn: &Turn<'_>,
    fate: &Fate,
    lines: &[Call<'_>],
    began_at: DateTime<Utc>,
) -> Vec<Span> {
    let (begun, now, called) = (&turn.opened.begun, turn.services.clock.now(), turn.called);
    let root = Context::of_turn(begun.session_id, begun.turn);
    let agent = root.sibling();
    let rounds = &called.rounds;
    let error = match &called.result {
        Err(error) => Some(error.code.to_owned()),
        Ok(_) if !matches!(fate, Fate::Done | Fate::Correction { .. }) => {
            Some(fate.as_str().to_owned())
        }
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
    // A turn that was stopped between two calls has no last call.
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

fn tool(turn: &Turn<'_>, used: &ToolUse) -> Attributes {
    vec![
        ("gen_ai.operation.name", "execute_tool".into()),
        ("gen_ai.tool.name", used.name.as_str().into()),
        ("gen_ai.tool.call.id", used.call_id.as_str().into()),
        ("gen_ai.tool.type", "function".into()),
        ("gen_ai.agent.name", turn.assignment.agent.name.as_str().into()),
        ("gen_ai.conversation.id", turn.opened.begun.session_id.to_string().into()),
    ]
}

/// Links to the request that asked for the task, and to the previous turn.
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
        ("dalsegno.outcome", fate.as_str().into()),
    ]
}

/// Builds the attributes of a model span. Every span has the conversation's id, because some products sum costs by it.
fn model(turn: &Turn<'_>, operation: &'static str, lines: &[Call<'_>]) -> Attributes {
    let Turn { assignment, opened, called, .. } = turn;
    let mut attributes: Attributes = vec![
        ("gen_ai.operation.name", operation.into()),
        ("gen_ai.provider.name", assignment.route.provider.telemetry_name().into()),
        ("gen_ai.agent.name", assignment.agent.name.as_str().into()),
        ("gen_ai.conversation.id", opened.begun.session_id.to_string().into()),
        ("gen_ai.request.model", assignment.route.model.as_str().into()),
    ];
    let sum = |kind: &[&str]| -> Option<i64> {
        let all = lines.iter().flat_map(kinds).filter(|(name, _)| kind.contains(name));
        all.map(|(_, n_tokens)| n_tokens).reduce(i64::saturating_add)
    };
    // In these conventions, cached tokens are part of the input.
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

pub fn kinds(line: &Call<'_>) -> impl Iterator<Item = (&'static str, i64)> {
    let tokens = line.tokens;
    let all = [
        ("input", tokens.input),
        ("output", tokens.output),
        ("cache_read", tokens.cache_read),
        ("cache_creation", tokens.cache_creation),
    ];
    all.into_iter().filter_map(|(kind, n_tokens)| n_tokens.map(|n_tokens| (kind, n_tokens)))
}
