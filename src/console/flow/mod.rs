//! The pages of flows: their list, the graph of one of them with its critical path, and the form that starts one.

mod critical;
mod graph;
mod start;

use std::collections::HashMap;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

pub(super) use self::start::{estimate, show as start};
use self::{
    critical::{CriticalPath, critical_path, has_ended, time_of},
    graph::{Node, graph},
};
use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tone, agent, agent_name, campaign_id, counted, duration, empty,
        facts, icon, id, next_page, optional, plain, section, sentence, wide,
    },
    pauses::author_of,
    task::tone,
};
use crate::{
    domain::{
        explanations::Explanation,
        flows::{Flow, FlowDetail, State, StepTask},
        tasks,
    },
    operations::{
        CancelFlow, ExplainTask, ListCampaigns, ListFlows, MAX_LIMIT, PauseFlow, Refusal,
        ResumeFlow, RetryFlow, ShowCampaign, ShowFlow,
    },
};

const STATES: [(State, &str); 5] = [
    (State::Running, "running"),
    (State::Paused, "paused"),
    (State::Done, "done"),
    (State::Failed, "failed"),
    (State::Cancelled, "cancelled"),
];

/// Filters of the list. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    campaign_id: String,
    cursor: Option<Uuid>,
}

pub(super) async fn list(Query(query): Query<ListQuery>, page: Page) -> PageResult {
    let state = |text: &str| STATES.into_iter().find(|(_, word)| *word == text);
    let state = optional("the state of a flow", &query.state, state)?.map(|(state, _)| state);
    let list = ListFlows {
        campaign_id: campaign_id(&query.campaign_id)?,
        state,
        cursor: query.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let names = campaign_names(&page).await?;
    let fields = [("state", query.state.as_str()), ("campaign_id", &query.campaign_id)];
    let is_filtered = fields.iter().any(|(_, value)| !value.is_empty());
    let body = html! {
        div.head { div { h1 { "Flows" } } div.actions { a."btn primary" href="/flows/start" { (icon("plus")) "Start a flow" } } }
        (filters(&query, &names))
        @if listing.items.is_empty() {
            @if is_filtered { div.empty { "No flow matches these filters. " a href="/flows" { "Show all flows" } } }
            @else { (empty("No flow was started. A flow is a set of tasks that depend on each other, made from a template.", "dalsegno flow start --campaign CAMPAIGN TEMPLATE")) }
        } @else {
            (section("Newest first", &html! { (counted(listing.items.len(), "flow", "flows")) }, &wide("Flows", &table(&page, &listing.items, &names))))
        }
        (next_page("/flows", &fields, listing.next.as_deref()))
    };
    let path = html! { span { "Flows" } };
    Ok(page.respond(Content { title: "Flows", path, body, watch: "all".to_owned() }).await?)
}

/// Names of campaigns for the filter and the table, the newest first.
async fn campaign_names(page: &Page) -> Result<Vec<(Uuid, String)>, Refusal> {
    let list = ListCampaigns { tags: None, metadata: None, cursor: None, limit: Some(MAX_LIMIT) };
    let listing = page.caller.run_if_allowed(list).await?;
    let items = listing.map(|listing| listing.items).unwrap_or_default();
    Ok(items.into_iter().map(|campaign| (campaign.id, campaign.name)).collect())
}

fn filters(query: &ListQuery, campaigns: &[(Uuid, String)]) -> Markup {
    html! {
        form.filters action="/flows" role="search" {
            label { "State" select name="state" {
                option value="" { "any" }
                @for (_, word) in STATES { option value=(word) selected[word == query.state] { (word) } }
            } }
            label { "Campaign" select name="campaign_id" {
                option value="" { "all" }
                @for (id, name) in campaigns { option value=(id) selected[id.to_string() == query.campaign_id] { (name) } }
            } }
            button.btn { "Filter" }
        }
    }
}

pub(super) fn state(flow: &Flow) -> Markup {
    let (tone, word) = state_words(flow.state);
    tone.state(word, Some(&format!("{} of {}", flow.done, flow.tasks)))
}

fn state_words(state: State) -> (Tone, &'static str) {
    match state {
        State::Running => (Tone::Running, "running"),
        State::Paused => (Tone::Paused, "paused"),
        State::Done => (Tone::Done, "done"),
        State::Failed => (Tone::Failed, "failed"),
        State::Cancelled => (Tone::Cancelled, "cancelled"),
    }
}

fn table(page: &Page, flows: &[Flow], campaigns: &[(Uuid, String)]) -> Markup {
    let name_of = |flow: &Flow| {
        campaigns.iter().find(|(id, _)| *id == flow.campaign_id).map(|(_, name)| name)
    };
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Flow" } th { "Campaign" } th { "Started" } th { "By" } th { "Id" } } }
            tbody {
                @for flow in flows {
                    tr {
                        td { (state(flow)) }
                        td.text { a href={ "/flows/" (flow.id) } { bdi { (flow.template) } } }
                        td.narrow-off { @match name_of(flow) { Some(name) => a href={ "/campaigns/" (flow.campaign_id) } { bdi { (name) } }, None => (id("", flow.campaign_id)) } }
                        td { (page.view.time(flow.created_at)) }
                        td.narrow-off { @if let Some(by) = &flow.added_by { bdi { (by) } } }
                        td.narrow-off { (id("", flow.id)) }
                    }
                }
            }
        }
    }
}

pub(super) async fn show(Path(given): Path<Uuid>, page: Page) -> PageResult {
    let detail = page.caller.run(ShowFlow { id: given }).await?;
    let FlowDetail { flow, steps } = &detail;
    let campaign =
        page.caller.run_if_allowed(ShowCampaign { id: flow.campaign_id, summary: true }).await?;
    let campaign = campaign.map(|overview| overview.campaign.name);
    let critical = critical_path(steps, page.view.now);
    let wait = explain_wait(&page, &detail).await?;
    let paused_by = match flow.state {
        State::Paused => author_of(&page, "flow.pause", &given.to_string()).await?,
        _ => None,
    };
    let name = format!("Flow {}", flow.template);
    let body = html! {
        (head(&page, &detail, &name))
        (explain(&page, &detail, &critical, wait.as_ref(), paused_by.as_deref()))
        div.stack {
            (section("Steps", &critical_words(&critical), &html! { (picture(&page, steps, &critical)) }))
            div.cols {
                div.stack {
                    (running(steps))
                    (section("Steps as a table", &html! { (counted(steps.len(), "task", "tasks")) }, &wide("Steps", &step_table(&page, steps, &critical))))
                }
                aside."stack side" {
                    (section("Facts", &html! {}, &flow_facts(&page, flow, campaign.as_deref())))
                    (inputs(flow))
                }
            }
        }
    };
    let path = html! {
        a href="/campaigns" { "Campaigns" } span { "/" }
        a href={ "/campaigns/" (flow.campaign_id) } { bdi { (campaign.as_deref().unwrap_or("campaign")) } } span { "/" }
        a href={ "/flows?campaign_id=" (flow.campaign_id) } { "Flows" }
    };
    let watch: Vec<String> = steps.iter().map(|step| step.task_id.to_string()).collect();
    Ok(page.respond(Content { title: &name, path, body, watch: watch.join(" ") }).await?)
}

fn head(page: &Page, FlowDetail { flow, steps }: &FlowDetail, name: &str) -> Markup {
    let (tone, word) = state_words(flow.state);
    html! {
        div.head {
            div {
                h1 { bdi { (name) } }
                div.meta {
                    (tone.badge(word, None))
                    span { (flow.done) " of " (flow.tasks) " tasks done" }
                    span { "started " (page.view.time(flow.created_at)) @if let Some(by) = &flow.added_by { " by " bdi { (by) } } }
                    (id("flow", flow.id))
                }
            }
            div.actions { (actions(page, flow, steps)) }
        }
    }
}

fn actions(page: &Page, flow: &Flow, steps: &[StepTask]) -> Markup {
    let given = flow.id.to_string();
    let here = format!("/flows/{given}");
    let fields = [("id", given.as_str())];
    let pause = Action::of::<PauseFlow>("Pause", "paused", &fields, &here);
    let resume = Action::of::<ResumeFlow>("Resume", "running", &fields, &here);
    let failed = steps
        .iter()
        .find(|step| matches!(step.state, tasks::State::Failed | tasks::State::Cancelled));
    let first = failed.map(|step| step.step.as_str());
    let retry = Confirmation {
        action: Action::of::<RetryFlow>("Retry from a step", "retry", &fields, &here),
        id: "retry-flow",
        heading: "Run a step again",
        consequences: html! { p { "The tasks of the step run again, and all that depend on them. Those that have not ended are cancelled first." } },
        fields: html! { div.field { label for="retry-from" { "Step" } select #retry-from name="from" data-flag="--from" { @for name in names(steps) { option value=(name) selected[Some(name) == first] { (name) } } } } },
        command: format!("dalsegno flow retry {given} --from {}", first.unwrap_or("STEP")),
    };
    let cancel = Confirmation {
        action: Action::of::<CancelFlow>("Cancel flow", "", &fields, &here).class("btn danger"),
        id: "cancel-flow",
        heading: "Cancel this flow",
        consequences: html! { p { "Waiting tasks end at once, running ones through their workers." } },
        fields: html! { div.field { label for="flow-reason" { "Reason, shown with the tasks" } input #flow-reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno flow cancel {given}"),
    };
    html! {
        @match flow.state {
            State::Running => (pause.button(&page.view, &page.caller)),
            State::Paused => (resume.button(&page.view, &page.caller)),
            State::Done | State::Failed | State::Cancelled => {},
        }
        @if !steps.is_empty() { (retry.button(&page.view, &page.caller)) }
        @if flow.ended_at.is_none() { (cancel.button(&page.view, &page.caller)) }
    }
}

/// Returns the names of the steps, each once.
fn names(steps: &[StepTask]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for step in steps {
        if !names.contains(&step.step.as_str()) {
            names.push(&step.step);
        }
    }
    names
}

/// Explains why the first step that could run does not. `None`: a step runs, or all have ended.
async fn explain_wait<'a>(
    page: &Page,
    FlowDetail { flow, steps }: &'a FlowDetail,
) -> Result<Option<(&'a StepTask, Explanation)>, Refusal> {
    let runs = |step: &StepTask| step.state == tasks::State::Running;
    if flow.state != State::Running || steps.iter().any(runs) {
        return Ok(None);
    }
    let is_open = |id: &Uuid| steps.iter().any(|step| step.task_id == *id && !has_ended(step));
    let is_next = |step: &&StepTask| !has_ended(step) && !step.after.iter().any(is_open);
    let Some(step) = steps.iter().find(is_next) else { return Ok(None) };
    let explanation = page.caller.run_if_allowed(ExplainTask { id: step.task_id }).await?;
    Ok(explanation.map(|explanation| (step, explanation)))
}

/// Says in a sentence where the flow is, and what has to happen.
fn explain(
    page: &Page,
    FlowDetail { flow, steps }: &FlowDetail,
    critical: &CriticalPath,
    wait: Option<&(&StepTask, Explanation)>,
    paused_by: Option<&str>,
) -> Markup {
    let (tone, _) = state_words(flow.state);
    let of =
        |state| -> Vec<&StepTask> { steps.iter().filter(|step| step.state == state).collect() };
    let (running, failed) = (of(tasks::State::Running), of(tasks::State::Failed));
    let open: Vec<&StepTask> = critical
        .places
        .iter()
        .map(|place| &steps[*place])
        .filter(|step| !has_ended(step))
        .collect();
    let took = flow.ended_at.map(|at| duration(at - flow.created_at));
    html! {
        section.explain.(tone.class()) #explain tabindex="-1" aria-label="Explanation" {
            (icon(tone.icon()))
            div {
                p.lede {
                    @match flow.state {
                        State::Running if running.is_empty() && wait.is_some() => { "No step runs now: " (counted(usize::try_from(flow.open).unwrap_or(0), "task has", "tasks have")) " not ended." }
                        State::Running if running.is_empty() => { "No step runs now: " (counted(usize::try_from(flow.open).unwrap_or(0), "task waits", "tasks wait")) " for a worker or for steps before." }
                        State::Running => { @for (place, step) in running.iter().enumerate() { @if place > 0 { ", " } (step_link(step)) } @if running.len() == 1 { " runs" } @else { " run" } @if let Some(time) = running.iter().filter_map(|step| time_of(step, page.view.now)).max() { ", for " (duration(time)) } ". " (flow.done) " of " (flow.tasks) " tasks are done." }
                        State::Paused => { "The flow is paused" @if let Some(at) = flow.paused_at { " since " (page.view.calendar(at)) } @if let Some(author) = paused_by { " by " bdi { (author) } } ": no step starts until it is resumed." }
                        State::Done => { "All " (flow.tasks) " tasks are done" @if let Some(took) = &took { ", after " (took) } "." }
                        State::Failed => { (counted(failed.len(), "task has failed", "tasks have failed")) ": " @for (place, step) in failed.iter().enumerate() { @if place > 0 { ", " } (step_link(step)) } "." }
                        State::Cancelled => { (counted(usize::try_from(flow.cancelled).unwrap_or(0), "task was cancelled", "tasks were cancelled")) "; " (flow.done) " of " (flow.tasks) " are done." }
                    }
                }
                @if let Some((step, explanation)) = wait {
                    p.next { (step_link(step)) ": " (sentence(&page.view, &explanation.because)) " " (sentence(&page.view, &explanation.next)) }
                }
                p.next {
                    @match flow.state {
                        State::Running | State::Paused if !open.is_empty() => { "The end depends on " @for (place, step) in open.iter().enumerate() { @if place > 0 { " → " } (step_link(step)) } "." }
                        State::Failed | State::Cancelled => "Retry from a step: its tasks and all that depend on them run again.",
                        _ => {}
                    }
                }
            }
        }
    }
}

fn step_link(step: &StepTask) -> Markup {
    html! { a href={ "/tasks/" (step.task_id) } { bdi { (step.step) } } }
}

fn critical_words(critical: &CriticalPath) -> Markup {
    html! {
        @if critical.places.len() > 1 {
            svg.swatch aria-hidden="true" { rect.p3 width="100%" y="3" height="4" {} }
            "critical path, " (critical.places.len()) " steps, "
            @match critical.took {
                Some(took) => { @if critical.is_estimate { "about " } (duration(took)) },
                None => "time unknown until a step has ended",
            }
        }
    }
}

fn picture(page: &Page, steps: &[StepTask], critical: &CriticalPath) -> Markup {
    let place_of: HashMap<Uuid, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.task_id, place)).collect();
    let node = |(place, step): (usize, &StepTask)| {
        let took = time_of(step, page.view.now).map(duration);
        let words = took.unwrap_or_else(|| step.state.as_str().to_owned());
        Node {
            name: step.step.clone(),
            sub: format!("{} · {words}", agent_name(&step.agent, &step.instance)),
            tone: Some(tone(step.state)),
            target: Some(format!("/tasks/{}", step.task_id)),
            after: step.after.iter().filter_map(|id| place_of.get(id).copied()).collect(),
            is_critical: critical.places.len() > 1 && critical.places.contains(&place),
        }
    };
    let nodes: Vec<Node> = steps.iter().enumerate().map(node).collect();
    graph("Steps of the flow, from left to right. The table below has the same data.", &nodes)
}

/// The running steps with their streamed text, which a script fills.
fn running(steps: &[StepTask]) -> Markup {
    let running = steps.iter().filter(|step| step.state == tasks::State::Running);
    let running: Vec<&StepTask> = running.collect();
    let rows = html! {
        ul."rows turns" {
            @for step in &running {
                li data-task=(step.task_id) {
                    (agent(&step.agent, &step.instance))
                    a.clip href={ "/tasks/" (step.task_id) } { bdi { (step.step) } }
                    (Tone::Running.state("running", None))
                    p.stream hidden { span data-stream {} }
                }
            }
        }
    };
    html! { @if !running.is_empty() { (section("Arriving now", &html! { "newest end" }, &rows)) } }
}

fn step_table(page: &Page, steps: &[StepTask], critical: &CriticalPath) -> Markup {
    let name_of = |id: &Uuid| steps.iter().find(|step| step.task_id == *id).map(|step| &step.step);
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Step" } th { "Agent" } th { "After" } th.num { "Time" } th { "Path" } } }
            tbody {
                @for (place, step) in steps.iter().enumerate() {
                    tr {
                        td { (tone(step.state).state(step.state.as_str(), None)) }
                        td.text { (step_link(step)) }
                        td { (agent(&step.agent, &step.instance)) }
                        td.narrow-off { @for (n, other) in step.after.iter().filter_map(name_of).enumerate() { @if n > 0 { ", " } bdi { (other) } } }
                        td.num { @match time_of(step, page.view.now) { Some(time) => (duration(time)), None => "–" } }
                        td.narrow-off { @if critical.places.len() > 1 && critical.places.contains(&place) { "critical" } }
                    }
                }
            }
        }
    }
}

fn flow_facts(page: &Page, flow: &Flow, campaign: Option<&str>) -> Markup {
    facts(&[
        (
            "Template",
            html! { a href={ "/catalogue/flow/" (flow.template) } { bdi { (flow.template) } } },
        ),
        (
            "Campaign",
            html! { a href={ "/campaigns/" (flow.campaign_id) } { bdi { (campaign.unwrap_or("campaign")) } } },
        ),
        ("Started", page.view.time(flow.created_at)),
        ("By", html! { @if let Some(by) = &flow.added_by { bdi { (by) } } }),
        ("Ended", html! { @if let Some(at) = flow.ended_at { (page.view.time(at)) } }),
        ("Done", html! { (flow.done) " of " (flow.tasks) }),
        ("Failed", html! { @if flow.failed > 0 { (flow.failed) } }),
        ("Cancelled", html! { @if flow.cancelled > 0 { (flow.cancelled) } }),
        (
            "Again",
            html! { a href={ "/flows/start?template=" (flow.template) "&campaign_id=" (flow.campaign_id) } { "start another one" } },
        ),
    ])
}

fn inputs(flow: &Flow) -> Markup {
    let Some(inputs) = flow.inputs.as_object().filter(|inputs| !inputs.is_empty()) else {
        return html! {};
    };
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => {
            items.iter().filter_map(|item| item.as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    let body = html! { @for (name, value) in inputs { h3.after { bdi { (name) } } (plain(&text(value))) } };
    section("Inputs", &html! {}, &body)
}
