//! A turn over its time: its phases, its calls and its tools.
//!
//! Stored are the claim, the begin and the end of the turn, its calls, and the ends of the tools that the service ran. The phases are the
//! stretches between these moments, and so have no rows of their own.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use crate::{
    console::parts::{
        Tone, View, counted, duration, empty, icon, no_price, price_hint, section, tokens, wide,
    },
    domain::{
        feed::ToolRun,
        turns::{Detail, State},
        usage::{LedgerCall, Outcome, Purpose},
    },
};

/// Most tools in the picture. The table has all.
const MAX_TOOLS: usize = 40;

/// A stretch of the time of a turn.
struct Stretch {
    name: Markup,
    begin: DateTime<Utc>,
    end: DateTime<Utc>,
    /// The moment of the first byte of an answer.
    first_byte: Option<DateTime<Utc>>,
    tone: Tone,
    is_sub: bool,
}

pub(super) fn show(view: &View, detail: &Detail) -> Markup {
    let (own, later) = split(detail);
    let stretches = stretches(view, detail, &own);
    let tools = &detail.tools;
    let end = html! {
        (counted(own.len(), "call", "calls"))
        @if !tools.is_empty() { ", " (counted(tools.len(), "tool", "tools")) }
    };
    let body = html! {
        (chart(if detail.claimed_at.is_some() { "Claim to end" } else { "Turn" }, &stretches))
        @if detail.claimed_at.is_none() && detail.turn.turn.state != State::Running {
            p."small soft after" { "The time from the claim to the begin is known as long as the queue keeps the run of the job." }
        }
        @if tools.len() > MAX_TOOLS { p."small soft after" { "The picture has the first " (MAX_TOOLS) " tools." } }
        @if detail.ledger.is_empty() { (empty("The ledger has no call of this turn.", "dalsegno cost --by purpose")) }
        @else {
            @if !own.is_empty() { (wide("Calls", &call_table(view, &own))) }
            (price_hint(detail.ledger.iter().filter(|call| call.is_unpriced()).map(|call| (call.provider.as_str(), call.model.as_str()))))
            @if !later.is_empty() {
                p."small soft after" { "After the turn, for its conversation:" }
                (wide("Calls after the turn", &call_table(view, &later)))
            }
        }
    };
    section("Phases, calls and tools", &end, &body)
}

/// Separates the calls of the turn from those that were made after it, such as the summary of a compaction.
fn split(detail: &Detail) -> (Vec<&LedgerCall>, Vec<&LedgerCall>) {
    let ended_at = detail.turn.turn.ended_at;
    detail.ledger.iter().partition(|call| ended_at.is_none_or(|at| call.called_at <= at))
}

fn stretches(view: &View, detail: &Detail, own: &[&LedgerCall]) -> Vec<Stretch> {
    let turn = &detail.turn.turn;
    let end = turn.ended_at.unwrap_or(view.now);
    let phase = |name: &str, begin, end| Stretch {
        name: html! { (name) },
        begin,
        end,
        first_byte: None,
        tone: Tone::Queued,
        is_sub: false,
    };
    let calls: Vec<&LedgerCall> =
        own.iter().copied().filter(|call| call.called_at >= turn.started_at).collect();
    let mut all = Vec::new();
    if let Some(claimed_at) = detail.claimed_at.filter(|at| *at < turn.started_at) {
        all.push(phase("Load and check", claimed_at, turn.started_at));
    }
    let Some(first) = calls.iter().map(|call| call.called_at).min() else {
        let name = if turn.ended_at.is_some() { "Begin and commit" } else { "Begin" };
        all.push(phase(name, turn.started_at, end));
        return all;
    };
    all.push(phase("Begin", turn.started_at, first.min(end)));
    let mut parts: Vec<Stretch> = calls.iter().map(|call| of_call(call)).collect();
    parts.extend(detail.tools.iter().take(MAX_TOOLS).map(of_tool));
    parts.sort_by_key(|part| part.begin);
    let last = parts.iter().map(|part| part.end).max().unwrap_or(first);
    all.extend(parts);
    if let Some(ended_at) = turn.ended_at.filter(|ended_at| *ended_at > last) {
        all.push(phase("Commit", last, ended_at));
    }
    all
}

fn of_call(call: &LedgerCall) -> Stretch {
    let ms = |n: Option<i32>| TimeDelta::milliseconds(n.unwrap_or(0).into());
    let end = call.called_at + ms(call.total_ms);
    Stretch {
        name: html! { (purpose(call)) span."faint clip" { bdi { (call.model) } } },
        begin: call.called_at,
        end,
        first_byte: call.first_byte_ms.map(|_| (call.called_at + ms(call.first_byte_ms)).min(end)),
        tone: match call.outcome {
            Outcome::Done => Tone::Running,
            Outcome::Failed | Outcome::Interrupted => Tone::Failed,
        },
        is_sub: false,
    }
}

fn of_tool(tool: &ToolRun) -> Stretch {
    let begin = tool.ended_at - TimeDelta::milliseconds(tool.took_ms.max(0));
    Stretch {
        name: html! { (icon("tool")) span.clip { bdi { (tool.tool) } } },
        begin,
        end: tool.ended_at,
        first_byte: None,
        tone: if tool.is_error { Tone::Failed } else { Tone::Held },
        is_sub: true,
    }
}

pub(super) fn purpose(call: &LedgerCall) -> String {
    let purpose = serde_json::to_value(call.purpose).ok();
    purpose.as_ref().and_then(|it| it.as_str()).unwrap_or("call").replace('_', " ")
}

fn chart(name: &str, stretches: &[Stretch]) -> Markup {
    let begin = stretches.iter().map(|it| it.begin).min().unwrap_or_default();
    let end = stretches.iter().map(|it| it.end).max().unwrap_or(begin);
    let whole = (end - begin).num_milliseconds().max(1) as f64;
    let percent = |of: TimeDelta| {
        format!("{:.2}%", (of.num_milliseconds() as f64 / whole * 100.0).clamp(0.0, 100.0))
    };
    let row = |it: &Stretch| {
        let took = it.end - it.begin;
        let label = match it.first_byte {
            Some(first) => {
                format!("{}, first byte after {}", duration(took), duration(first - it.begin))
            }
            None => duration(took),
        };
        let waited = it.first_byte.unwrap_or(it.begin) - it.begin;
        html! {
            div.sub[it.is_sub] { (it.name) }
            svg.chart role="img" aria-label=(label) {
                g class=(it.tone.class()) {
                    // A stretch that is too short to be seen still has a line.
                    @if it.first_byte.is_some() { rect.bar-soft x=(percent(it.begin - begin)) y="6" width=(percent(waited)) height="16" rx="2" {} }
                    rect class=(if it.tone == Tone::Queued { "bar-soft" } else { "bar-tone" }) x=(percent(it.begin - begin + waited)) y="6" width=(percent(took - waited)) height="16" rx="2" {}
                    line.edge-tone x1=(percent(it.begin - begin)) x2=(percent(it.begin - begin)) y1="6" y2="22" {}
                }
            }
            div.num { (duration(took)) }
        }
    };
    html! {
        div.fall {
            div { b { (name) } } svg.chart aria-hidden="true" { rect.track y="12" width="100%" height="4" {} } div.num { (duration(end - begin)) }
            @for it in stretches { (row(it)) }
        }
        ul.legend {
            @for (class, bar, words) in [("queued", "bar-soft", "Phases of the service"), ("running", "bar-soft", "Call until the first byte"), ("running", "bar-tone", "Answer arrives"), ("held", "bar-tone", "Tool"), ("failed", "bar-tone", "Failed")] {
                li { svg aria-hidden="true" { g class=(class) { rect class=(bar) width="100%" height="100%" rx="2" {} } } (words) }
            }
        }
    }
}

fn call_table(view: &View, ledger: &[&LedgerCall]) -> Markup {
    let money = view.column(ledger.iter().map(|call| call.cost_micros));
    let known = |n: Option<i64>| n.map_or_else(|| "unknown".to_owned(), tokens);
    html! {
        table.after {
            thead { tr { th { "At" } th { "Call" } th.num { "In" } th.num { "From the cache" } th.num { "To the cache" } th.num { "Out" } th.num { "Cost" } } }
            tbody {
                @for call in ledger {
                    tr {
                        td { (view.clock(call.called_at)) }
                        td { @if call.purpose == Purpose::Turn { (purpose(call)) } @else { a href={ "?ledger=" (call.id) "#side-call" } { (purpose(call)) } } }
                        td.num { (known(call.input_tokens)) } td.num { (known(call.cache_read_tokens)) } td.num { (known(call.cache_creation_tokens)) }
                        td.num { (known(call.output_tokens)) } td.num { @if call.is_unpriced() { (no_price()) } @else { (money(call.cost_micros)) } }
                    }
                }
            }
        }
    }
}
