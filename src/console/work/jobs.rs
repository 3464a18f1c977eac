//! The list of jobs and dead letters, with its filters in the URL.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::tab_bar;
use crate::{
    console::{
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{
            Action, Tone, campaign_id, capital, counted, duration, empty, next_page, optional,
            section, title, url_text, wide,
        },
    },
    domain::explanations::describe_wait,
    operations::{JobState, ListJobs, ListedJob, RetryJob},
    queue::admin::WaitReason,
};

const STATES: [&str; 6] = ["ready", "running", "blocked", "scheduled", "held", "dead"];

/// Filters of the list. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct PageQuery {
    #[serde(default)]
    queue: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    lane: String,
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    waits_for: String,
    cursor: Option<i64>,
}

pub(in crate::console) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let waits_for =
        optional("a reason for which jobs wait", &query.waits_for, |text| text.parse().ok())?;
    let list = ListJobs {
        queue: given(&query.queue),
        kind: given(&query.kind),
        state: optional("the state of a job", &query.state, |state| {
            state.parse::<JobState>().ok()
        })?,
        lane: given(&query.lane),
        campaign_id: campaign_id(&query.campaign_id)?,
        waits_for,
        cursor: query.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let names = Names::load(&page).await?;
    let filters = query.filters();
    let is_filtered = filters.iter().any(|(_, value)| !value.is_empty());
    let is_dead = query.state == "dead";
    let here = if is_dead { "/work/jobs?state=dead" } else { "/work/jobs" };
    let more = if listing.next.is_some() { "first " } else { "" };
    let n = listing.items.len();
    let body = html! {
        div.head { div { h1 { @if is_dead { "Dead letters" } @else { "Jobs" } } @if is_dead { div.meta { span { "Jobs that failed for good. A retry gives them fresh attempts." } } } } }
        (tab_bar(&page, here, &query.queue).await?)
        (form(&query, &names))
        @if listing.items.is_empty() {
            @if is_dead { (empty("No dead letters: nothing has failed for good.", "dalsegno job ls --state dead")) }
            @else if is_filtered { div.empty { "No job matches these filters. " a href="/work/jobs" { "Show all jobs" } } }
            @else { (empty("No job waits or runs. Each task that has not ended has one.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\"")) }
        } @else {
            (section("Oldest first", &html! { (more) (counted(n, "job", "jobs")) }, &table(&page, &listing.items, &names, &target(&filters))))
        }
        (next_page("/work/jobs", &filters, listing.next.as_deref()))
    };
    let path = html! { a href="/work" { "Work" } };
    let title = if is_dead { "Dead letters" } else { "Jobs" };
    Ok(page.respond(Content { title, path, body, watch: "all".to_owned() }).await?)
}

impl PageQuery {
    fn filters(&self) -> [(&'static str, &str); 6] {
        [
            ("queue", &self.queue),
            ("state", &self.state),
            ("waits_for", &self.waits_for),
            ("kind", &self.kind),
            ("lane", &self.lane),
            ("campaign_id", &self.campaign_id),
        ]
    }
}

/// Returns the path of the list with its filters.
fn target(filters: &[(&str, &str)]) -> String {
    let set = filters.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> = set.map(|(name, value)| format!("{name}={}", url_text(value))).collect();
    match pairs.is_empty() {
        true => "/work/jobs".to_owned(),
        false => format!("/work/jobs?{}", pairs.join("&")),
    }
}

fn form(query: &PageQuery, names: &Names) -> Markup {
    let is_filtered = query.filters().iter().any(|(_, value)| !value.is_empty());
    html! {
        form.filters action="/work/jobs" role="search" {
            label { "State" select name="state" {
                option value="" { "any" }
                @for state in STATES { option value=(state) selected[state == query.state] { (if state == "dead" { "dead letter" } else { state }) } }
            } }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            label { "Waits for" select name="waits_for" {
                option value="" { "any" }
                @for reason in WaitReason::ALL { option value=(reason.as_str()) selected[reason.as_str() == query.waits_for] { (capital(describe_wait(reason))) } }
            } }
            label { "Queue" input name="queue" value=(query.queue) placeholder="any" size="10"; }
            label { "Kind" input name="kind" value=(query.kind) placeholder="any" size="12"; }
            label { "Lane" input type="search" name="lane" value=(query.lane) placeholder="any" size="18"; }
            button.btn { "Filter" }
            @if is_filtered { a."btn quiet" href="/work/jobs" { "Show all" } }
        }
    }
}

fn table(page: &Page, jobs: &[ListedJob], names: &Names, here: &str) -> Markup {
    let row = |listed: &ListedJob| {
        let job = &listed.job;
        let id = job.id.to_string();
        let fields = [("id", id.as_str())];
        let retry = Action::of::<RetryJob>("Retry", "", &fields, here).class("btn slim");
        html! {
            tr {
                td { (state_of(&job.state, job.wait_reason.as_deref())) }
                td.fill {
                    a href={ "/work/jobs/" (job.id) } {
                        @match &listed.task {
                            Some(task) => bdi { (title(&task.prompt)) },
                            None => { (job.kind.replace('_', " ")) " " (job.id) },
                        }
                    }
                }
                td.narrow-off { @if let Some(lane) = &job.lane { span.clip { bdi { (names.lane(lane)) } } } }
                td.text { (why(page, listed, names)) }
                td.num { (duration(page.view.now - job.enqueued_at)) }
                td.num { (job.attempt) "/" (job.max_attempts) }
                td.num { @if job.state == "dead" { (retry.button(&page.view, &page.caller)) } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Job" } th.narrow-off { "Lane" } th { "Why" } th.num { "Age" } th.num { "Attempts" } th {} } }
            tbody { @for job in jobs { (row(job)) } }
        }
    };
    wide("Jobs", &table)
}

/// Shows what the queue knows about a job's state in some words; the page of the job explains it.
fn why(page: &Page, listed: &ListedJob, names: &Names) -> Markup {
    let job = &listed.job;
    let due = job.due_at();
    let of_lane = |words: &str| {
        html! { @match &job.lane { Some(lane) => a href={ "/work/lanes?name=" (url_text(lane)) } { (words) }, None => (words) } }
    };
    html! {
        @match (job.state.as_str(), job.wait_reason.as_deref()) {
            ("dead", _) => bdi { (names.in_words(job.reason.as_deref().unwrap_or_default())) },
            ("held", _) => bdi { (names.in_words(job.reason.as_deref().unwrap_or("it failed"))) },
            ("blocked", Some("lane_hold")) => (of_lane("its lane is held")),
            ("blocked", _) => (of_lane("behind another job of its lane")),
            ("running", _) => "runs now",
            ("ready", Some("pause")) => "its campaign or its queue is paused",
            ("ready", _) => { "ready " (page.view.time(job.run_at)) },
            (_, Some("signal")) => "for another task, or its flow",
            (_, Some("provider")) => {
                @match &listed.awaited_model {
                    Some(model) => { "for " bdi { (model.provider) " (" (model.model) ")" } ", busy or unreachable" },
                    None => "for a busy or unreachable provider",
                }
                @if let Some(at) = due { ", until " (page.view.time(at)) }
            },
            (_, Some("batch")) => { "for the answer to its batch" @if let Some(at) = due { ", next look " (page.view.time(at)) } },
            (_, Some("condition")) if listed.budget.is_some() => { "for space in " a href="/cost/budgets" { "a budget" } },
            // A limit that is looked at again may be a budget, too.
            (_, Some("condition")) if due.is_some() => "for space in a budget or a rate limit",
            (_, Some("condition")) => "for a rate limit",
            (_, Some("retry")) => { "after an error" @if let Some(at) = due { ", again " (page.view.time(at)) } },
            (_, Some("crash")) => { "its worker was lost" @if let Some(at) = due { ", again " (page.view.time(at)) } },
            _ => { @if let Some(at) = due { "until " (page.view.time(at)) } },
        }
    }
}

/// Shows the state of a job. One that is paused, or held with its lane, is not ready and not behind another one.
pub(super) fn state_of(given: &str, reason: Option<&str>) -> Markup {
    match reason {
        Some("pause") => Tone::Paused.state("paused", None),
        Some("lane_hold") => Tone::Held.state("lane held", None),
        _ => state(given),
    }
}

/// Shows the state of a job.
pub(super) fn state(state: &str) -> Markup {
    let (tone, word) = match state {
        "ready" => (Tone::Queued, "ready"),
        "running" => (Tone::Running, "running"),
        "blocked" => (Tone::Waiting, "behind"),
        "scheduled" => (Tone::Waiting, "waiting"),
        "held" => (Tone::Held, "held"),
        "dead" => (Tone::Failed, "dead letter"),
        "ended" => (Tone::Done, "ended"),
        other => (Tone::Queued, other),
    };
    tone.state(word, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_list_has_its_filters() {
        let query = PageQuery {
            waits_for: "pause".into(),
            state: "dead".into(),
            lane: "a/b c".into(),
            ..PageQuery::default()
        };
        assert_eq!(
            target(&query.filters()),
            "/work/jobs?state=dead&waits_for=pause&lane=a%2Fb%20c"
        );
        assert_eq!(target(&PageQuery::default().filters()), "/work/jobs");
    }

    #[test]
    fn each_filter_of_states_is_a_state() {
        for state in STATES {
            assert!(state.parse::<JobState>().is_ok(), "{state}");
        }
    }
}
