//! The pages of the queue: what waits and why, workers, jobs, lanes, dead letters, bulk actions.

pub(super) mod bulk;
mod credentials;
pub(super) mod job;
pub(super) mod jobs;
pub(super) mod lanes;
mod one_worker;
mod rate_limits;
pub(super) mod waits;
mod workers;

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use self::{one_worker::Choice, waits::WaitSums};
use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tab, counted, duration, empty, section, shell_word, tabs, url_text,
        wide,
    },
    pauses::pause_words,
};
use crate::{
    domain::audit::PauseSubject,
    operations::{ListQueues, ListWaits, PauseQueue, Refusal, ResumeQueue, ShowWorkerActivity},
    queue::admin::QueueView,
};

/// The queue that is shown first.
const TURNS: &str = "turns";

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    queue: String,
    /// The worker whose runs are listed.
    #[serde(default)]
    worker: String,
    /// The end of the time of which they are listed.
    #[serde(default)]
    until: String,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let queues = page.caller.run(ListQueues {}).await?.items;
    let waits = page.caller.run(ListWaits {}).await?;
    let activity = page.caller.run(ShowWorkerActivity::default()).await?;
    let name = if query.queue.is_empty() { TURNS } else { query.queue.as_str() };
    let queue = queues.iter().find(|queue| queue.queue == name);
    let sums = queue.map(|queue| WaitSums::of(queue, &waits.items));
    let names = Names::load(&page).await?;
    let one_worker = match Choice::read(&query.worker, &query.until)? {
        Some(choice) => Some(one_worker::show(&page, choice).await?),
        None => None,
    };
    let paused_by = match queue {
        Some(QueueView { paused_at: Some(at), pause_reason, .. }) => {
            let reason = pause_reason.as_deref();
            page.caller.pause_author(PauseSubject::Queue, name, *at, reason).await?
        }
        _ => None,
    };
    let body = html! {
        (head(&page, name, queue, sums))
        (tab_bar(&page, "/work", name).await?)
        @if let Some(QueueView { pause_reason: Some(reason), paused_at, .. }) = queue {
            section."explain paused" #explain { (super::parts::icon("paused")) div { p.lede { "The queue is paused: no job starts until it is resumed." } p.next dir="auto" { (pause_words(&page.view, reason, paused_by.as_deref(), *paused_at)) } } }
        }
        @match queue.zip(sums) {
            Some((queue, sums)) => (strip(queue, sums)),
            None => (empty("No worker has served this queue, and it has had no job.", &format!("dalsegno worker {}", if name == "upkeep" { "upkeep" } else { "turns" }))),
        }
        div.cols {
            div.stack {
                @if let Some(runs) = one_worker { (runs) }
                (workers::show(&page, name, &activity, &names))
            }
            aside."stack side" {
                (waits::show(&page, name, &waits))
                (rate_limits::show(&page, &names).await?)
                (credentials::show(&page).await?)
                (section("Queues", &html! { (queues.len()) }, &queue_table(&page, &queues)))
            }
        }
    };
    let path = html! { span { "Work" } span.end { (queue_choice("/work", name, &queues)) } };
    Ok(page.respond(Content { title: "Work", path, body, watch: "all".to_owned() }).await?)
}

fn head(page: &Page, name: &str, queue: Option<&QueueView>, sums: Option<WaitSums>) -> Markup {
    let here = format!("/work?queue={}", url_text(name));
    let fields = [("name", name)];
    let pause = Confirmation {
        action: Action::of::<PauseQueue>("Pause the queue", "paused", &fields, &here),
        id: "confirm-pause",
        heading: "Pause this queue",
        consequences: html! { p { "Workers claim none of its jobs until it is resumed. Running jobs continue. New jobs are accepted and wait." } },
        fields: html! { div.field { label for="reason" { "Reason, shown while it is paused" } input #reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno queue pause {}", shell_word(name)),
    };
    let resume = Action::of::<ResumeQueue>("Resume the queue", "", &fields, &here);
    let is_paused = queue.is_some_and(|queue| queue.paused_at.is_some());
    html! {
        div.head {
            div {
                h1 { "Work" }
                div.meta {
                    span { "Queue " bdi { (name) } }
                    @if let Some(queue) = queue {
                        span { (waiting(queue)) " wait, " (queue.running) " run" }
                        @if let Some(at) = sums.and_then(|sums| sums.ready_at) { span { "oldest ready " (duration(page.view.now - at)) } }
                    }
                }
            }
            div.actions {
                @if is_paused { (resume.button(&page.view, &page.caller)) } @else { (pause.button(&page.view, &page.caller)) }
            }
        }
    }
}

fn waiting(queue: &QueueView) -> i64 {
    queue.ready + queue.blocked + queue.scheduled + queue.held
}

/// The links between the pages of the queue. Dead letters are counted over all queues. A caller who may not list these gets none: a key
/// that is bound to campaigns has bulk actions only.
async fn tab_bar(page: &Page, here: &str, queue: &str) -> Result<Markup, Refusal> {
    let Some(queues) = page.caller.run_if_allowed(ListQueues {}).await? else {
        return Ok(html! {});
    };
    let queues = queues.items;
    let sum = |of: fn(&QueueView) -> i64| queues.iter().map(of).sum::<i64>();
    let of_queue = |path: &str| match queue {
        TURNS | "" => path.to_owned(),
        queue => {
            let join = if path.contains('?') { '&' } else { '?' };
            format!("{path}{join}queue={}", url_text(queue))
        }
    };
    Ok(tabs(
        "Parts of the queue",
        here,
        &[
            Tab { words: "Now", key: "/work", target: of_queue("/work"), count: None },
            Tab {
                words: "Jobs",
                key: "/work/jobs",
                target: of_queue("/work/jobs"),
                count: Some(sum(|queue| waiting(queue) + queue.running)),
            },
            Tab {
                words: "Dead letters",
                key: "/work/jobs?state=dead",
                target: of_queue("/work/jobs?state=dead"),
                count: Some(sum(|queue| queue.dead)),
            },
            Tab {
                words: "Lanes",
                key: "/work/lanes",
                target: "/work/lanes".to_owned(),
                count: None,
            },
            Tab {
                words: "Bulk actions",
                key: "/work/bulk",
                target: "/work/bulk".to_owned(),
                count: None,
            },
        ],
    ))
}

/// Links to the same page of other queues.
fn queue_choice(path: &str, name: &str, queues: &[QueueView]) -> Markup {
    html! {
        nav.choice aria-label="Queue" {
            @for queue in queues {
                a href={ (path) "?queue=" (url_text(&queue.queue)) } aria-current=[(queue.queue == name).then_some("page")] { (queue.queue) }
            }
        }
    }
}

fn strip(queue: &QueueView, sums: WaitSums) -> Markup {
    let of = |state: &str| format!("/work/jobs?queue={}&state={state}", url_text(&queue.queue));
    let reason =
        |reason: &str| format!("/work/jobs?queue={}&waits_for={reason}", url_text(&queue.queue));
    let figure = |name: &str, n: i64, state: &str, more: Markup| {
        html! {
            div {
                p.what { a href=(of(state)) { (name) } }
                p.figure { (n) " " small { (more) } }
            }
        }
    };
    html! {
        div.strip {
            (figure("Running", queue.running, "running", html! { "on " (counted(queue.workers, "worker", "workers")) }))
            (figure("Ready", sums.ready, "ready", html! { @if sums.paused > 0 { a href=(reason("pause")) { (sums.paused) " paused" } } @else { "a free slot takes them" } }))
            (figure("Waiting", sums.behind + sums.later, "scheduled", html! { a href=(of("blocked")) { (sums.behind) " behind others" } }))
            (figure("Held", sums.held, "held", html! { a href=(of("dead")) { (counted(queue.dead, "dead letter", "dead letters")) } }))
        }
    }
}

fn queue_table(page: &Page, queues: &[QueueView]) -> Markup {
    let table = html! {
        table.sums {
            thead { tr { th { "Queue" } th.num { "Run" } th.num { "Wait" } th.num { "Dead" } th.num { "Workers" } } }
            tbody {
                @for queue in queues {
                    tr {
                        td { a href={ "/work?queue=" (url_text(&queue.queue)) } { (queue.queue) } @if let Some(at) = queue.paused_at { div."tiny faint" { "paused since " (page.view.calendar(at)) @if let Some(reason) = queue.pause_reason.as_ref().filter(|reason| !reason.is_empty()) { ": " bdi { (reason) } } } } }
                        td.num { (queue.running) } td.num { (waiting(queue)) } td.num { (queue.dead) } td.num { (queue.workers) }
                    }
                }
            }
        }
    };
    match queues.is_empty() {
        true => empty("No queue has had a job or a worker yet.", "dalsegno worker turns"),
        false => wide("Queues", &table),
    }
}
