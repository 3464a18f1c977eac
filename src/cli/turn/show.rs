//! Text output of a turn, its calls and their contexts.

use chrono::TimeDelta;
use uuid::Uuid;

use super::list::{NO_PRICE, duration};
use crate::{
    cli::{
        output::{
            format_wrapped, format_wrapped_fields, format_wrapped_table, short_id, short_text,
        },
        session::serialised_name,
        words::{format_duration, time, time_or_dash},
    },
    domain::{
        agents::Catalogue,
        amount::format_money,
        manifests::{CallContext, Part},
        prompt_versions::describe_version,
        turns::{Detail, HistoryCheck, ListedTurn, PUT_OFF, State},
        usage::{LedgerCall, Purpose},
    },
};

/// Longest shown source of a part. The names of skills have no limit.
const SOURCE_MAX_CHARS: usize = 20;

pub(super) fn format_turn(detail: &Detail, catalogue: &Catalogue) -> String {
    let Detail { ledger, contexts, .. } = detail;
    let mut text = format_wrapped_fields(&fields(detail, catalogue));
    if !ledger.is_empty() {
        text.push_str("\nCalls in the ledger:\n");
        text.extend(ledger.iter().map(|call| format_call(call, detail.turn.is_unpriced)));
        if let Some(beside) =
            ledger.iter().find(|call| matches!(call.purpose, Purpose::Summary | Purpose::Facts))
        {
            let shows = format!(
                "`dalsegno context show --ledger {}` shows what such a call was sent.",
                beside.id
            );
            text.push_str(&format_wrapped("  ", &shows));
        }
    }
    if contexts.is_empty() {
        let why = match detail.turn.turn.state {
            State::Running => "The context is stored with the end of the turn.",
            _ => "No context is stored: the turn ended before its call was recorded.",
        };
        text.push_str(&format!("\n{why}\n"));
    }
    let hidden = detail.hidden_posts.iter();
    let hidden =
        hidden.map(|it| format!("{} ({} to {})", it.seq, it.sender, it.audience.join(", ")));
    let hidden: Vec<String> = hidden.collect();
    if !hidden.is_empty() {
        let sentence = format!("Posts to others, not in the context: {}.", hidden.join("; "));
        text.push_str(&format!("\n{}", format_wrapped("", &sentence)));
    }
    let mut earlier: Option<&CallContext> = None;
    for context in contexts {
        text.push_str(&format!("\n{}", format_context(context, earlier)));
        earlier = Some(context);
    }
    text
}

fn fields(detail: &Detail, catalogue: &Catalogue) -> Vec<(&'static str, String)> {
    let ListedTurn { turn, agent, instance, provider, model, prompt_hash, .. } = &detail.turn;
    let ended = match duration(turn) {
        Some(took) => format!("{}, after {}", time_or_dash(turn.ended_at), format_duration(took)),
        None => "-".to_owned(),
    };
    let prompt = match (detail.prompt_seq, detail.prompt_turn) {
        (Some(seq), Some(earlier)) if earlier != turn.number => {
            format!("message {seq} of the session, stored by turn {earlier}")
        }
        (Some(seq), _) => format!("message {seq} of the session"),
        (None, _) => "not stored in this session".to_owned(),
    };
    let version = match prompt_hash.is_empty() {
        true => "unknown".to_owned(),
        false => describe_version(agent, prompt_hash).join("; "),
    };
    let mut fields = vec![
        ("turn", format!("{} of session {}", turn.number, turn.session_id)),
        ("state", turn.state_word().to_owned()),
        ("agent", catalogue.format_name(agent, instance)),
        ("version", version),
        ("model", format!("{model} on {provider}")),
        ("task", format!("{}, attempt {}", turn.task_id, turn.attempt)),
        ("prompt", prompt),
        ("begun", time(turn.started_at)),
        ("ended", ended),
        (
            "tokens",
            format_tokens(
                Some(turn.input_tokens),
                Some(turn.cache_read_tokens),
                Some(turn.cache_creation_tokens),
                Some(turn.output_tokens),
            ),
        ),
        (
            "cost",
            match detail.turn.is_unpriced {
                true => NO_PRICE.to_owned(),
                false => format_money(turn.cost_micros),
            },
        ),
    ];
    fields.extend(turn.chain.as_ref().map(|choice| ("chain", choice.describe())));
    fields.extend(turn.history_check.map(|check| ("history", history(check).to_owned())));
    let flags = turn.flags.iter().filter(|flag| *flag != PUT_OFF);
    fields.extend(flags.map(|flag| ("note", flag.clone())));
    fields.extend(turn.error.iter().map(|error| ("error", error.clone())));
    fields
}

fn history(check: HistoryCheck) -> &'static str {
    match check {
        HistoryCheck::Seen => "seen: the provider's count of the prompt proves it",
        HistoryCheck::NotSeen => "not seen: the count is too low for a prompt with the history",
        HistoryCheck::NotProvable => {
            "not provable: the count fits with and without the history, or there is none"
        }
        HistoryCheck::NoHistory => "none: nothing came before the turn",
    }
}

/// Formats counts of tokens. Those that the provider does not report are left out.
fn format_tokens(
    input: Option<i64>,
    cache_read: Option<i64>,
    cache_creation: Option<i64>,
    output: Option<i64>,
) -> String {
    let known = [
        (input, "in"),
        (cache_read.filter(|n| *n > 0), "read from the cache"),
        (cache_creation.filter(|n| *n > 0), "written to the cache"),
        (output, "out"),
    ];
    let known = known.into_iter().filter_map(|(n, what)| Some(format!("{} {what}", n?)));
    let known: Vec<_> = known.collect();
    if known.is_empty() { "unknown".to_owned() } else { known.join(", ") }
}

/// Formats a call. `is_said`: the turn already says that it has no price.
fn format_call(call: &LedgerCall, is_said: bool) -> String {
    let mut head = format!(
        "{}: {}, {}; {}",
        call.id,
        serialised_name(call.purpose),
        serialised_name(call.outcome),
        time(call.called_at)
    );
    if let Some(millis) = call.total_ms {
        let took = format_duration(TimeDelta::milliseconds(millis.into()));
        head.push_str(&format!(", took {took}"));
    }
    let tokens = format_tokens(
        call.input_tokens,
        call.cache_read_tokens,
        call.cache_creation_tokens,
        call.output_tokens,
    );
    let cost = match call.is_unpriced() {
        true if is_said => String::new(),
        true => format!("; cost: {NO_PRICE}"),
        false => format!("; cost: {}", format_money(call.cost_micros)),
    };
    let model = &call.model;
    let body = format!("{model} on {}; tokens: {tokens}{cost}", call.provider);
    format!("{}{}", format_wrapped("  ", &head), format_wrapped("    ", &body))
}

/// Formats a context; for a further call of the turn, only the difference to the call before it.
fn format_context(context: &CallContext, earlier: Option<&CallContext>) -> String {
    let counted = match context.counted_tokens {
        Some(n) => format!("{n} counted by the provider"),
        None => "not counted by the provider".to_owned(),
    };
    let mut text = format_wrapped(
        "",
        &format!(
            "Context of call {}: {} tokens estimated, {counted}",
            context.call, context.estimated_tokens
        ),
    );
    let is_in = |part: &Part, other: Option<&CallContext>| {
        other.is_some_and(|other| other.parts.contains(part))
    };
    let new = || context.parts.iter().filter(|part| !is_in(part, earlier));
    let sent: Vec<_> = new().filter(|part| part.sent).collect();
    let left_out: Vec<_> = new().filter(|part| !part.sent).collect();
    let gone = earlier.into_iter().flat_map(|earlier| &earlier.parts);
    let gone: Vec<_> = gone.filter(|part| !is_in(part, Some(context))).collect();
    let sent_title = match earlier {
        Some(earlier) => format!("Sent besides the parts of call {}", earlier.call),
        None => "Sent".to_owned(),
    };
    for (title, parts) in
        [(sent_title.as_str(), sent), ("Left out", left_out), ("No longer sent", gone)]
    {
        if !parts.is_empty() {
            text.push_str(&format!("\n{title}:\n{}", format_parts(&parts)));
        }
    }
    text
}

fn format_parts(parts: &[&Part]) -> String {
    let row = |part: &&Part| {
        // The text of a part that is left out may not have been loaded.
        let tokens = match part.sent || part.tokens > 0 {
            true => part.tokens.to_string(),
            false => "-".to_owned(),
        };
        let cells =
            [part.kind.replace('_', " "), source(part), tokens, serialised_name(part.trust)];
        (cells, part.reason.clone())
    };
    let head = ["KIND", "SOURCE", "TOKENS", "TRUST"];
    format_wrapped_table(&head, parts.iter().map(row), "REASON")
}

/// Names the source of a part: the end of an id, a name, or places in the transcript or on the board.
fn source(part: &Part) -> String {
    let id = part.id.as_ref().map(|id| match id.parse::<Uuid>() {
        Ok(id) => short_id(id),
        Err(_) => short_text(id, SOURCE_MAX_CHARS),
    });
    let span = part.span.map(|span| match span.count {
        Some(n) => format!("{} ({n})", span.as_range()),
        None => span.as_range(),
    });
    let by_trust = part.by_trust.iter().map(|(trust, n)| format!("{n} {trust}"));
    let by_trust = (!part.by_trust.is_empty()).then(|| by_trust.collect::<Vec<_>>().join(", "));
    let known: Vec<_> = id.into_iter().chain(span).chain(by_trust).collect();
    if known.is_empty() { "-".to_owned() } else { known.join(", ") }
}
