//! The page of a flow: its steps as a graph and as a table.

use std::collections::HashMap;

use axum::extract::Path;
use maud::{Markup, html};
use uuid::Uuid;

use super::{
    control::actions,
    explain::{explain, explain_wait, step_link},
    graph::{Node, graph},
    state_words,
};
use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{Tone, agent, agent_name, counted, duration, facts, id, plain, section, wide},
        task::tone,
    },
    domain::{
        audit::{PauseSubject, describe_label},
        flows::{CriticalPath, Flow, FlowDetail, State, StepTask, critical_path},
        tasks,
    },
    operations::{ShowCampaign, ShowFile, ShowFlow},
};

pub(in crate::console) async fn show(Path(given): Path<Uuid>, page: Page) -> PageResult {
    let detail = page.caller.run(ShowFlow { id: given }).await?;
    let FlowDetail { flow, steps } = &detail;
    let campaign =
        page.caller.run_if_allowed(ShowCampaign { id: flow.campaign_id, summary: true }).await?;
    let campaign = campaign.map(|overview| overview.campaign.name);
    let critical = critical_path(steps, page.view.now);
    let wait = explain_wait(&page, &detail).await?;
    let paused_at = flow.paused_at.filter(|_| flow.state == State::Paused);
    let paused_by = match paused_at {
        Some(at) => {
            page.caller.pause_author(PauseSubject::Flow, &given.to_string(), at, None).await?
        }
        None => None,
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
                    span { "started " (page.view.time(flow.created_at)) @if let Some(by) = &flow.added_by { " by " bdi title=(by) { (describe_label(by)) } } }
                    (id("flow", flow.id))
                }
            }
            div.actions { (actions(page, flow, steps)) }
        }
    }
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
        let took = step.duration(page.view.now).map(duration);
        let words = took.unwrap_or_else(|| step.state.as_str().to_owned());
        Node {
            name: step.step.clone(),
            sub: format!("{} · {words}", agent_name(&step.agent, &step.instance)),
            tone: Some(tone(step.state)),
            target: Some(format!("/tasks/{}", step.task_id)),
            after: step.after.iter().filter_map(|id| place_of.get(id).copied()).collect(),
            is_critical: critical.contains(place),
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
                        td.num { @match step.duration(page.view.now) { Some(time) => (duration(time)), None => "–" } }
                        td.narrow-off { @if critical.contains(place) { "critical" } }
                    }
                }
            }
        }
    }
}

fn flow_facts(page: &Page, flow: &Flow, campaign: Option<&str>) -> Markup {
    let file = format!("/catalogue/flow/{}", flow.template);
    facts(&[
        ("Template", page.link::<ShowFile>(&file, &html! { bdi { (flow.template) } })),
        (
            "Campaign",
            html! { a href={ "/campaigns/" (flow.campaign_id) } { bdi { (campaign.unwrap_or("campaign")) } } },
        ),
        ("Started", page.view.time(flow.created_at)),
        (
            "By",
            html! { @if let Some(by) = &flow.added_by { bdi title=(by) { (describe_label(by)) } } },
        ),
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
