//! The page of a job: the explanation, its attempts, its input.

use axum::extract::Path;
use maud::{Markup, html};
use uuid::Uuid;

use super::jobs::{state, state_of};
use crate::{
    console::{
        job_runs::{worker_of_present, worker_of_run},
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{
            Action, Confirmation, Tone, counted, duration, empty, facts, icon, section, sentence,
            url_text, wide,
        },
    },
    operations::{CancelJob, ExplainJob, HoldJob, ListJobs, ReleaseJob, RetryJob, ShowJob},
    queue::admin::{Explanation, JobDetail, RunRecord, outcome_words},
};

/// Longest input in the page.
const PAYLOAD_MAX_CHARS: usize = 12_000;

pub(in crate::console) async fn show(Path(given): Path<i64>, page: Page) -> PageResult {
    let explanation = page.caller.run(ExplainJob { id: given }).await?;
    // A job that has ended is not listed any more, and has an explanation only.
    let detail = match explanation.state.as_str() {
        "ended" => None,
        _ => Some(page.caller.run(ShowJob { id: given }).await?),
    };
    let names = Names::load(&page).await?;
    let task = task_of(&page, detail.as_ref()).await?;
    let name = match &detail {
        Some(detail) => format!("{} {given}", detail.summary.kind.replace('_', " ")),
        None => format!("Job {given}"),
    };
    let body = html! {
        div.head {
            div {
                h1 { (name) }
                div.meta {
                    @match &detail {
                        Some(JobDetail { summary, .. }) => (state_of(&summary.state, summary.wait_reason.as_deref())),
                        None => (state(&explanation.state)),
                    }
                    @if let Some(task) = task { a href={ "/tasks/" (task) } { "Its task" } }
                    @if let Some(JobDetail { summary, .. }) = &detail {
                        @if let Some(lane) = &summary.lane { a href={ "/work/lanes?name=" (url_text(lane)) } { bdi { (names.lane(lane)) } } }
                    }
                }
            }
            @if let Some(detail) = &detail { (actions(&page, detail)) }
        }
        (explain(&page, &explanation))
        @if let Some(detail) = &detail {
            div.cols {
                div.stack { (runs(&page, &detail.runs)) (payload(detail, task)) }
                aside."stack side" { (section("Facts", &html! {}, &job_facts(&page, detail, &names))) }
            }
        } @else { (runs(&page, &explanation.runs)) }
    };
    let path = html! { a href="/work" { "Work" } span { "/" } a href="/work/jobs" { "Jobs" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

/// Finds the task of a job, in the list that has only this job.
async fn task_of(
    page: &Page,
    detail: Option<&JobDetail>,
) -> Result<Option<Uuid>, crate::operations::Refusal> {
    let Some(JobDetail { summary, .. }) = detail else { return Ok(None) };
    let list = ListJobs {
        queue: None,
        kind: None,
        state: summary.state.parse().ok(),
        lane: None,
        campaign_id: None,
        waits_for: None,
        cursor: Some(summary.id - 1),
        limit: Some(1),
    };
    let listed = page.caller.run(list).await?.items.into_iter().next();
    let own = listed.filter(|listed| listed.job.id == summary.id);
    Ok(own.and_then(|listed| listed.task).map(|task| task.id))
}

fn actions(page: &Page, detail: &JobDetail) -> Markup {
    let summary = &detail.summary;
    let given = summary.id.to_string();
    let here = format!("/work/jobs/{given}");
    let fields = [("id", given.as_str())];
    let retry = Action::of::<RetryJob>("Run now", "retry", &fields, &here);
    let release = Action::of::<ReleaseJob>("Release", "", &fields, &here);
    let reason = |id: &str| html! { div.field { label for=(id) { "Reason" } input id=(id) name="reason" data-flag="--reason" maxlength="300"; } };
    let hold = Confirmation {
        action: Action::of::<HoldJob>("Hold", "held", &fields, &here),
        id: "confirm-hold",
        heading: "Hold this job",
        consequences: html! { p { "It does not run until it is released, and the jobs behind it in its lane wait with it." } },
        fields: reason("hold-reason"),
        command: format!("dalsegno job hold {given}"),
    };
    let cancel = Confirmation {
        action: Action::of::<CancelJob>("Cancel", "", &fields, "/work/jobs").class("btn danger"),
        id: "confirm-cancel",
        heading: "Cancel this job",
        consequences: html! { p { "A waiting job ends at once, a running one through its worker. The job of a task cancels the task, with its children." } },
        fields: reason("cancel-reason"),
        command: format!("dalsegno job cancel {given}"),
    };
    let (view, caller) = (&page.view, &page.caller);
    html! {
        div.actions {
            @match summary.state.as_str() {
                "held" => { (release.button(view, caller)) (retry.button(view, caller)) (cancel.button(view, caller)) },
                "dead" => (retry.button(view, caller)),
                "running" => (cancel.button(view, caller)),
                "scheduled" => { (retry.button(view, caller)) (hold.button(view, caller)) (cancel.button(view, caller)) },
                _ => { (hold.button(view, caller)) (cancel.button(view, caller)) },
            }
        }
    }
}

fn explain(page: &Page, explanation: &Explanation) -> Markup {
    let tone = match explanation.state.as_str() {
        "running" => Tone::Running,
        "dead" => Tone::Failed,
        "held" => Tone::Held,
        "ended" => Tone::Done,
        "ready" => Tone::Queued,
        _ => Tone::Waiting,
    };
    html! {
        section class={ "explain " (tone.class()) } #explain tabindex="-1" {
            (icon(tone.icon()))
            div {
                p.lede dir="auto" { (sentence(&page.view, &explanation.because)) }
                p.next dir="auto" { (sentence(&page.view, &explanation.next)) }
            }
        }
    }
}

fn runs(page: &Page, runs: &[RunRecord]) -> Markup {
    let row = |(place, run): (usize, &RunRecord)| {
        let is_repeated = place > 0 && run.error.is_some() && runs[place - 1].error == run.error;
        let tone = match run.outcome.as_str() {
            "done" => Tone::Done,
            "failed" | "lost" | "interrupted" => Tone::Failed,
            "cancelled" => Tone::Cancelled,
            _ => Tone::Waiting,
        };
        html! {
            tr {
                td { (tone.state(outcome_words(&run.outcome), None)) }
                td.num { @if run.outcome == "snooze" { span.faint { "none" } } @else { (run.attempt) } }
                td { (page.view.clock(run.ended_at)) }
                td { (worker_of_run(run)) }
                td.num { @if let Some(at) = run.started_at { (duration(run.ended_at - at)) } }
                td.text { @if is_repeated { span.faint { "the same" } } @else { bdi { (sentence(&page.view, run.error.as_deref().unwrap_or_default())) } } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "Outcome" } th.num { "Attempt" } th { "Ended" } th { "Worker" } th.num { "Took" } th { "Error" } } }
            tbody { @for run in runs.iter().enumerate() { (row(run)) } }
        }
    };
    let body = match runs.is_empty() {
        true => empty("No attempt has ended yet.", ""),
        false => wide("Attempts", &table),
    };
    section("Runs", &runs_words(runs), &body)
}

/// Counts the runs, and those that used up an attempt. A run that was put off uses up none.
fn runs_words(runs: &[RunRecord]) -> Markup {
    let n_put_off = runs.iter().filter(|run| run.outcome == "snooze").count();
    html! {
        (counted(runs.len(), "run", "runs"))
        @if n_put_off > 0 { ", " (n_put_off) " put off" }
    }
}

fn payload(detail: &JobDetail, task: Option<Uuid>) -> Markup {
    let text = serde_json::to_string_pretty(&detail.payload).unwrap_or_default();
    let short: String = text.chars().take(PAYLOAD_MAX_CHARS).collect();
    let is_cut = short.len() < text.len();
    let shown = html! { pre."code wrap" { (short) @if is_cut { "…" } } };
    let body = html! {
        @match task {
            Some(task) => {
                p { "The job runs the next turn of " a href={ "/tasks/" (task) } { "its task" } ", which has the prompt." }
                details.after { summary { "The payload, as the queue has it" } (shown) }
            },
            None => (shown),
        }
        @if is_cut { p."tiny faint after" { "The whole: " code { "dalsegno job show " (detail.summary.id) " --json" } } }
    };
    section("Input", &html! {}, &body)
}

fn job_facts(page: &Page, detail: &JobDetail, names: &Names) -> Markup {
    let summary = &detail.summary;
    facts(&[
        (
            "Queue",
            html! { a href={ "/work?queue=" (url_text(&summary.queue)) } { (summary.queue) } },
        ),
        ("Kind", html! { (summary.kind) }),
        ("Group", html! { @if let Some(group) = &summary.group_key { (names.group(group)) } }),
        ("Priority", html! { (summary.priority) }),
        ("Attempt", html! { (summary.attempt) " of " (summary.max_attempts) }),
        ("Runs on", html! { @if let Some(run) = &detail.running { (worker_of_present(run)) } }),
        (
            "Claimed",
            html! { @if let Some(run) = &detail.running { (page.view.time(run.claimed_at)) } },
        ),
        (
            "Lease",
            html! { @if let Some(run) = &detail.running { (run.lease) @if let Some(at) = run.lease_until { ", until " (page.view.time(at)) } } },
        ),
        ("Added", page.view.time(summary.enqueued_at)),
        (
            if summary.state == "dead" { "Dead since" } else { "Due" },
            html! { @if let Some(at) = summary.due_at() { (page.view.time(at)) } },
        ),
        ("Headers", headers(detail)),
    ])
}

/// Lists the headers of a job. The task is linked at the top of the page.
fn headers(detail: &JobDetail) -> Markup {
    let all = detail.headers.as_ref().and_then(|headers| headers.as_object());
    let others = all.into_iter().flatten().filter(|(name, _)| *name != "task");
    html! {
        @for (name, value) in others { div { bdi { (name) } ": " code { bdi { (value.as_str().map_or_else(|| value.to_string(), str::to_owned)) } } } }
    }
}
