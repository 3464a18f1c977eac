//! A compaction: what it replaced, where each message and each value is now, and the summaries that were rejected.

use axum::extract::Path;
use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{Tone, empty, facts, rendered, section, tokens, wide},
    },
    domain::compactions::{
        CompactionComparison, ExactValue, MessagePlace, ReplacedMessage, ValuePlace,
    },
    operations::CompareCompaction,
};

/// Values that are listed before the rest is folded.
const FIRST: usize = 20;

pub(in crate::console) async fn show(
    Path((given, number)): Path<(Uuid, i32)>,
    page: Page,
) -> PageResult {
    let compared = page.caller.run(CompareCompaction { id: given, number }).await?;
    let name = format!("Compaction {number}");
    let compaction = &compared.compaction;
    let state = match (compared.is_current, compaction.undone_at) {
        (true, _) => Tone::Running.state("in use", None),
        (false, Some(_)) => Tone::Cancelled.state("undone", None),
        (false, None) => Tone::Done.state("not in use", None),
    };
    let command = format!("dalsegno session compaction {given} {number}");
    let body = html! {
        div.head {
            div { h1 { (name) } div.meta { (state) span { (replaced(&compared)) } } }
            @if compared.is_current { div.actions { (super::undo(&page, given, &format!("/sessions/{given}"), "Undo it")) } }
        }
        div.cols {
            div.stack {
                @match &compaction.summary {
                    Some(summary) => (section("Summary", &html! { (tokens(compaction.tokens_before)) " → " (tokens(compaction.tokens_after.unwrap_or_default())) " tokens" }, &rendered(summary))),
                    None => (empty("No summary was accepted: the messages stay as they are.", &command)),
                }
                @if !compared.messages.is_empty() { (section("Replaced messages", &html! { (compared.messages.len()) }, &messages(given, &compared.messages))) }
                @if let Some(earlier) = &compared.earlier_summary { (section("Earlier summary", &html! { "replaced, too" }, &rendered(earlier))) }
                (rejected(&compared))
            }
            aside."stack side" {
                (section("Facts", &html! {}, &facts(&[
                    ("Made", page.view.time(compaction.created_at)),
                    ("After turn", html! { a href={ "/sessions/" (given) "/turns/" (compaction.turn) } { (compaction.turn) } }),
                    ("Model", html! { @if let Some(model) = &compaction.model { bdi { (model) } } }),
                    ("Applied", html! { @if let Some(at) = compaction.applied_at { (page.view.time(at)) } }),
                    ("Undone", html! { @if let Some(at) = compaction.undone_at { (page.view.time(at)) } }),
                ])))
                (values(&compared))
                pre."code wrap" { (command) }
            }
        }
    };
    let path = html! { a href={ "/sessions/" (given) } { "Session" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

fn messages(session: Uuid, messages: &[ReplacedMessage]) -> Markup {
    let row = |it: &ReplacedMessage| {
        html! {
            tr {
                td.num { a href={ "/sessions/" (session) "?cursor=" (it.seq - 1) "#m" (it.seq) } { (it.seq) } }
                td.text { bdi { (it.beginning) } }
                td { (place(it.place)) }
                td.num { @if it.values > 0 { (it.values_shown) " of " (it.values) } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th.num { "Message" } th { "Beginning" } th { "Now" } th.num { "Values kept" } } }
            tbody { @for it in messages { (row(it)) } }
        }
    };
    wide("Replaced messages", &table)
}

/// Names all that the summary stands for.
fn replaced(compared: &CompactionComparison) -> String {
    let compaction = &compared.compaction;
    let messages = format!("messages {} to {}", compaction.from_seq, compaction.to_seq);
    match compared.earlier_summary {
        Some(_) => format!("the earlier summary, and {messages}"),
        None => messages,
    }
}

fn place(place: MessagePlace) -> &'static str {
    match place {
        MessagePlace::Kept => "word for word",
        MessagePlace::Shortened => "beginning and end",
        MessagePlace::Sentences => "some sentences",
        MessagePlace::Summary => "summarised",
        MessagePlace::Archive => "dropped; the archive has it",
    }
}

fn values(compared: &CompactionComparison) -> Markup {
    let row = |it: &ExactValue| {
        let words = match it.place {
            ValuePlace::Summary => "in the summary",
            ValuePlace::KeptText => "in a kept text",
            ValuePlace::Archive => "dropped; the archive has it",
        };
        html! { li { code { bdi { (it.text) } } " " span.soft { (words) @if it.is_pinned { ", pinned" } } } }
    };
    // Those that the next call lacks come first.
    let mut all: Vec<&ExactValue> = compared.values.iter().collect();
    all.sort_by_key(|value| value.place != ValuePlace::Archive);
    let n_dropped = all.iter().filter(|value| value.place == ValuePlace::Archive).count();
    if all.is_empty() {
        return html! {};
    }
    let body = html! {
        ul."rows small" { @for it in all.iter().take(FIRST) { (row(it)) } }
        @if all.len() > FIRST { details.after { summary { (all.len() - FIRST) " more" } ul."rows small" { @for it in &all[FIRST..] { (row(it)) } } } }
        @if compared.more_values > 0 { p."small soft after" { (compared.more_values) " further values are not listed." } }
    };
    section(
        "Exact values",
        &html! { (all.len() + compared.more_values) ", " (n_dropped) " dropped" },
        &body,
    )
}

fn rejected(compared: &CompactionComparison) -> Markup {
    let body = html! {
        ul."rows small" { @for attempt in &compared.attempts { @for fault in &attempt.faults { li { bdi { (fault) } } } } }
    };
    html! { @if !compared.attempts.is_empty() { (section("Rejected summaries", &html! { (compared.attempts.len()) }, &body)) } }
}
