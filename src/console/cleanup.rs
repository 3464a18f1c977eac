//! The nightly cleanup: what it would remove now, what it has removed, and a run by hand.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tone, bytes, coded, counted, duration, empty, facts, next_page,
        section, wide,
    },
};
use crate::{
    domain::{
        audit::describe_label,
        cleanups::{CleanupRun, KeepReason, Preview, UNCOUNTED},
        schedules::{BY_SCHEDULE, NIGHTLY_CLEANUP},
        sessions::DueReason,
    },
    operations::{ListCleanupRuns, ListSchedules, PreviewCleanup, RunCleanup},
};

const HERE: &str = "/cleanup";

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    preview: String,
    cursor: Option<i64>,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let listing =
        page.caller.run(ListCleanupRuns { cursor: query.cursor, limit: Some(30) }).await?;
    let schedules = page.caller.run(ListSchedules {}).await?.items;
    let next = schedules.iter().find(|it| it.name == NIGHTLY_CLEANUP).and_then(|it| it.next_slot);
    let preview = match query.preview.as_str() {
        "" => None,
        "next" => Some(page.caller.run(PreviewCleanup { at: next }).await?),
        _ => Some(page.caller.run(PreviewCleanup { at: None }).await?),
    };
    let body = html! {
        div.head {
            div { h1 { "Cleanup" } div.meta { @match next { Some(at) => span { "Runs next " (page.view.calendar(at)) }, None => span { a href="/schedules" { "Its schedule" } " names no next time" } } } }
            div.actions { (run(&page)) }
        }
        (super::groups::cleanup(HERE))
        div.cols {
            div.stack {
                @if listing.items.is_empty() {
                    (section("History", &html! { "0" }, &empty("No cleanup has run yet.", "dalsegno cleanup --dry-run")))
                } @else {
                    (section("History", &html! { "newest first" }, &history(&page, &listing.items)))
                }
                (next_page(HERE, &[], listing.next.as_deref()))
            }
            aside."stack side" { (section("What would go", &choice(&query.preview), &due(&page, preview.as_ref()))) }
        }
    };
    let path = html! { span { "Cleanup" } };
    Ok(page.respond(Content { title: "Cleanup", path, body, watch: String::new() }).await?)
}

fn run(page: &Page) -> Markup {
    let run = Confirmation {
        action: Action::of::<RunCleanup>("Run the cleanup", "", &[], HERE),
        id: "confirm-run",
        heading: "Run the cleanup now",
        consequences: html! { p { "A worker removes expired sessions with their transcripts, old events and revoked memory, and archives old posts. Summaries that a later task can use are kept. It cannot be undone." } },
        fields: html! {},
        command: "dalsegno cleanup".to_owned(),
    };
    run.button(&page.view, &page.caller)
}

fn choice(preview: &str) -> Markup {
    html! {
        @if !preview.is_empty() {
            a href="/cleanup?preview=now" aria-current=[(preview != "next").then_some("page")] { "now" } " · "
            a href="/cleanup?preview=next" aria-current=[(preview == "next").then_some("page")] { "at the next run" }
        }
    }
}

/// The preview reads all expired rows, so it is made on request.
fn due(page: &Page, preview: Option<&Preview>) -> Markup {
    let Some(preview) = preview else {
        return html! {
            p."small soft" { "The preview reads all expired rows, which can take some seconds." }
            div."actions after" { a.btn href="/cleanup?preview=next" { "Preview the next run" } a."btn quiet" href="/cleanup?preview=now" { "Preview now" } }
        };
    };
    let days = preview.keep_days;
    let kept: Vec<_> = preview.kept.iter().filter(|(_, n)| **n > 0).collect();
    html! {
        (facts(&[
            ("Sessions", html! { (preview.sessions) ", " (preview.messages) " messages" }),
            ("Texts", html! { (bytes(preview.bytes)) }),
            ("Summaries kept", html! { (preview.summaries_kept) }),
            ("Summaries removed", html! { (preview.summaries_removed) }),
            ("Events", html! { (preview.events) }),
            ("Memory items", html! { (preview.memory_items) }),
            ("Posts archived", html! { (preview.posts_archived) @if preview.posts_held > 0 { ", " (preview.posts_held) " stay until they are read" } }),
        ]))
        @if !preview.groups.is_empty() {
            div.after { (wide("Sessions by provider", &html! {
                table.sums {
                    thead { tr { th { "Provider" } th { "Because" } th.num { "Sessions" } th.num { "Oldest" } } }
                    tbody { @for group in &preview.groups { tr { td { (group.provider) } td { (match group.because { DueReason::Expired => "expired", DueReason::Closed => "closed" }) } td.num { (group.sessions) } td.num { (page.view.calendar(group.oldest)) } } } }
                }
            })) }
        }
        @if !kept.is_empty() {
            p."small soft after" { "Due, but kept: " @for (n, (reason, count)) in kept.iter().enumerate() { @if n > 0 { ", " } (count) " " (keep_words(**reason)) } }
        }
        p."tiny faint after" { "Closed sessions are kept " (days.closed_sessions) " days, summaries " (days.summaries) ", events " (days.events) ", memory items " (days.memory_items) ". " (coded(UNCOUNTED)) }
    }
}

fn keep_words(reason: KeepReason) -> &'static str {
    match reason {
        KeepReason::Running => "with a running turn",
        KeepReason::TaskWaiting => "with a task that waits",
        KeepReason::InUse => "in use",
    }
}

fn history(page: &Page, runs: &[CleanupRun]) -> Markup {
    let row = |run: &CleanupRun| {
        let (tone, word) = match (run.ended_at, run.outcome.as_deref()) {
            (None, _) => (Tone::Running, "running"),
            (_, None | Some("done")) => (Tone::Done, "done"),
            (_, Some(other)) => (Tone::Failed, other),
        };
        html! {
            tr {
                td { (tone.state(word, None)) }
                td { (page.view.calendar(run.started_at)) }
                td { (run.kind) @if run.kind == "folders" { " on " bdi { (run.host) } } }
                td { @match run.requested_by.as_deref() { Some(BY_SCHEDULE) => "its schedule", Some(label) => bdi title=(label) { (describe_label(label)) }, None => {} } }
                td.num { (run.sessions) }
                td.num { (bytes(run.bytes)) }
                td.num.narrow-off { (run.summaries_kept) }
                td.num.narrow-off { (run.events) }
                td.num.narrow-off { (run.posts_archived) }
                td.num { @if let Some(secs) = run.duration_secs { (duration(chrono::TimeDelta::milliseconds((secs * 1e3) as i64))) } @else if let Some(job) = run.job_id { a href={ "/work/jobs/" (job) } { "job" } } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Begun" } th { "Of" } th { "By" } th.num { "Sessions" } th.num { "Texts" } th.num.narrow-off { "Summaries kept" } th.num.narrow-off { "Events" } th.num.narrow-off { "Posts" } th.num { "Took" } } }
            tbody { @for run in runs { (row(run)) } }
        }
    };
    html! { (wide("Cleanups", &table)) p."tiny faint after" { (counted(runs.len(), "run", "runs")) } }
}
