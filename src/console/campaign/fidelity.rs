//! The fidelity of a campaign: proofs that the models saw the history, and the errors of estimates.

use maud::{Markup, html};
use uuid::Uuid;

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{
            Share, Tone, agent, empty, facts, next_page, place, section, share_bar, tokens, wide,
        },
    },
    domain::{
        fidelity::{CheckCounts, CheckedTurn, FidelityReport, RejectedSummaries},
        turns::HistoryCheck,
    },
    operations::{ListCheckedTurns, Refusal, ReportFidelity},
};

/// Proofs by which turns are filtered, with their words.
const CHECKS: [(&str, HistoryCheck); 4] = [
    ("seen", HistoryCheck::Seen),
    ("not_seen", HistoryCheck::NotSeen),
    ("not_provable", HistoryCheck::NotProvable),
    ("no_history", HistoryCheck::NoHistory),
];

pub(super) async fn show(
    page: &Page,
    campaign: Uuid,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let report = page.caller.run(ReportFidelity { id: campaign }).await?;
    let check = CHECKS.into_iter().find(|(word, _)| *word == query.check);
    let list = ListCheckedTurns {
        id: campaign,
        history: check.map(|(_, check)| check),
        cursor: place(&query.cursor)?,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let here = format!("/campaigns/{campaign}");
    let command = format!("dalsegno fidelity report --campaign {campaign}");
    Ok(html! {
        div.stack {
            @if report.is_limited { p."small soft" { "The numbers are those of the newest 10,000 ended turns, with their calls and sessions." } }
            (section("Was the history seen?", &html! {}, &seen(&report)))
            (section("Estimates and summaries", &html! {}, &figures(&report)))
            @if !report.rejected.is_empty() { (section("Rejected summaries", &html! { (report.rejected.len()) }, &rejected(page, &report.rejected))) }
            div {
                div.filters {
                    nav.choice aria-label="Proof" {
                        a href={ (here) "?part=fidelity" } aria-current=[check.is_none().then_some("page")] { "all" }
                        @for (word, _) in CHECKS { a href={ (here) "?part=fidelity&check=" (word) } aria-current=[(word == query.check).then_some("page")] { (word.replace('_', " ")) } }
                    }
                }
                @if listing.items.is_empty() && listing.next.is_some() { div.empty { "No match among the next 10,000 turns; older ones have not been searched yet." } }
                @else if listing.items.is_empty() { (empty("No ended turn has this proof.", &command)) }
                @else { (section("Turns", &html! { "newest session first" }, &wide("Turns", &turns(page, &listing.items)))) }
                (next_page(&here, &[("part", "fidelity"), ("check", &query.check)], listing.next.as_deref()))
            }
        }
    })
}

fn seen(report: &FidelityReport) -> Markup {
    let CheckCounts { seen, not_seen, not_provable, no_history, not_checked } = report.turns;
    let share = |name: &str, n: i64, class| Share {
        name: name.into(),
        value: n as f64,
        shown: n.to_string(),
        class,
    };
    let shares = [
        share("Seen", seen, "p4"),
        share("Not seen", not_seen, "p6"),
        share("Not provable", not_provable, "p2"),
        share("No history", no_history, "p7"),
        share("Not checked", not_checked, "hatch"),
    ];
    let whole = (seen + not_seen + not_provable + no_history + not_checked) as f64;
    html! {
        (share_bar("Turns by proof", &shares, whole, None))
        p."small soft after" { "The provider's count of the prompt proves it: a prompt without the history would have fewer tokens." }
    }
}

fn figures(report: &FidelityReport) -> Markup {
    let (estimates, summaries) = (&report.estimates, &report.summaries);
    // An estimate of as many tokens as were counted is 0 % off.
    let off = |ratio: Option<f64>| html! { @if let Some(ratio) = ratio { (format!("{:+.1} %", (ratio - 1.0) * 100.0)) } };
    facts(&[
        ("Counted calls", html! { (estimates.counted_calls) }),
        ("Lowest estimate", off(estimates.smallest)),
        ("Median estimate", off(estimates.median)),
        ("Highest estimate", off(estimates.largest)),
        ("Summaries applied", html! { (summaries.applied) }),
        ("Summaries undone", html! { (summaries.undone) }),
        ("Attempts rejected", html! { (summaries.rejected_attempts) }),
        ("Summaries refused", html! { (summaries.refused) }),
        ("Sessions lost", html! { (report.lost_sessions) }),
    ])
}

fn rejected(page: &Page, items: &[RejectedSummaries]) -> Markup {
    html! {
        ul."rows small" {
            @for it in items {
                li {
                    a href={ "/sessions/" (it.session_id) "/compactions/" (it.generation) } { "compaction " (it.generation) }
                    " after turn " (it.turn) ", " (page.view.time(it.created_at))
                    @if it.was_accepted_later { span.soft { ", a later attempt was accepted" } }
                    @for attempt in &it.attempts { @for fault in &attempt.faults { div.soft { bdi { (fault) } } } }
                }
            }
        }
    }
}

fn turns(page: &Page, items: &[CheckedTurn]) -> Markup {
    let row = |it: &CheckedTurn| {
        let state = match it.history_check {
            Some(HistoryCheck::Seen) => Tone::Done.state("seen", None),
            Some(HistoryCheck::NotSeen) => Tone::Failed.state("not seen", None),
            Some(HistoryCheck::NotProvable) => Tone::Waiting.state("not provable", None),
            Some(HistoryCheck::NoHistory) => Tone::Queued.state("no history", None),
            None => Tone::Queued.state("not checked", None),
        };
        html! {
            tr {
                td { (state) }
                td { a href={ "/sessions/" (it.session_id) "/turns/" (it.turn) } { "turn " (it.turn) } }
                td { (agent(&it.agent, &it.instance)) }
                td.narrow-off { bdi { (it.model) } }
                td { (page.view.time(it.ended_at)) }
                td.num { @if let Some(n) = it.estimated_tokens { (tokens(n)) } }
                td.num { @if let Some(n) = it.counted_tokens { (tokens(n)) } }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th { "History" } th { "Turn" } th { "Agent" } th.narrow-off { "Model" } th { "Ended" } th.num { "Estimated" } th.num { "Counted" } } }
            tbody { @for it in items { (row(it)) } }
        }
    }
}
