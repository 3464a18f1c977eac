//! The flows of a campaign: their states, and the graph of the steps of one of them.

use maud::{Markup, html};
use uuid::Uuid;

use super::{PageQuery, flow_graph};
use crate::{
    console::{
        page::Page,
        parts::{
            Action, Confirmation, Tone, agent, counted, empty, facts, id, next_page, section, wide,
        },
        task::tone,
    },
    domain::{
        class::Kind,
        flows::{Flow, FlowDetail, State, StepTask},
    },
    operations::{CancelFlow, ListFlows, PauseFlow, Refusal, ResumeFlow, RetryFlow, ShowFlow},
};

/// Flows beside the other parts of the page.
const MAX_SHORT: i64 = 5;

/// The newest flows, beside the other parts of the page.
pub(super) async fn short(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let list = ListFlows {
        campaign_id: Some(campaign),
        state: None,
        cursor: None,
        limit: Some(MAX_SHORT),
    };
    let Some(listing) = page.caller.run_if_allowed(list).await? else { return Ok(html! {}) };
    let body = html! {
        @if listing.items.is_empty() { p."small soft" { "No flow was started." } }
        @else { ul."rows small" { @for flow in &listing.items { li { (state(flow)) " " a href=(target(campaign, flow.id)) { bdi { (flow.template) } } } } } }
    };
    let end = html! { @if !listing.items.is_empty() { a href={ "/campaigns/" (campaign) "?part=flows" } { "all" } } };
    Ok(section("Flows", &end, &body))
}

pub(super) async fn show(
    page: &Page,
    campaign: Uuid,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let list = ListFlows {
        campaign_id: Some(campaign),
        state: None,
        cursor: query.cursor.parse().ok(),
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let Some(first) = listing.items.first() else {
        return Ok(empty(
            "No flow was started: a set of tasks that depend on each other, made from a template.",
            &format!("dalsegno flow start --campaign {campaign} TEMPLATE"),
        ));
    };
    let chosen = query.flow.unwrap_or(first.id);
    let detail = match page.caller.run(ShowFlow { id: chosen }).await {
        Ok(detail) => Some(detail).filter(|detail| detail.flow.campaign_id == campaign),
        Err(refusal) if refusal.kind == Kind::NotFound => None,
        Err(refusal) => return Err(refusal),
    };
    Ok(html! {
        div.stack {
            @match &detail {
                Some(detail) => (one(page, campaign, detail)),
                None => (empty("This campaign has no such flow.", &format!("dalsegno flow ls --campaign {campaign}"))),
            }
            (section("All flows", &html! { "newest first" }, &html! {
                (wide("Flows", &table(page, campaign, chosen, &listing.items)))
                (next_page(&format!("/campaigns/{campaign}"), &[("part", "flows")], listing.next.as_deref()))
            }))
        }
    })
}

fn target(campaign: Uuid, flow: Uuid) -> String {
    format!("/campaigns/{campaign}?part=flows&flow={flow}")
}

fn state(flow: &Flow) -> Markup {
    let (tone, word) = match flow.state {
        State::Running => (Tone::Running, "running"),
        State::Paused => (Tone::Paused, "paused"),
        State::Done => (Tone::Done, "done"),
        State::Failed => (Tone::Failed, "failed"),
        State::Cancelled => (Tone::Cancelled, "cancelled"),
    };
    tone.state(word, Some(&format!("{} of {}", flow.done, flow.tasks)))
}

/// A flow with the graph of its steps.
fn one(page: &Page, campaign: Uuid, FlowDetail { flow, steps }: &FlowDetail) -> Markup {
    let body = html! {
        div."answer-bar" { (state(flow)) div.actions { (actions(page, campaign, flow, steps)) } }
        (facts(&[
            ("Started", page.view.time(flow.created_at)),
            ("By", html! { @if let Some(by) = &flow.added_by { bdi { (by) } } }),
            ("Ended", html! { @if let Some(at) = flow.ended_at { (page.view.time(at)) } }),
            ("Open", html! { (counted(usize::try_from(flow.open).unwrap_or(0), "task", "tasks")) }),
        ]))
        div.after { (flow_graph::show(steps)) }
        details.after { summary { "Steps as a table" } (wide("Steps", &step_table(steps))) }
    };
    let heading = format!("Flow {}", flow.template);
    html! { div #flow { (section(&heading, &id("flow", flow.id), &body)) } }
}

fn actions(page: &Page, campaign: Uuid, flow: &Flow, steps: &[StepTask]) -> Markup {
    let (given, then) = (flow.id.to_string(), target(campaign, flow.id));
    let fields = [("id", given.as_str())];
    let pause = Action::of::<PauseFlow>("Pause", "paused", &fields, &then);
    let resume = Action::of::<ResumeFlow>("Resume", "running", &fields, &then);
    let retry = Confirmation {
        action: Action::of::<RetryFlow>("Retry from a step", "retry", &fields, &then),
        id: "retry-flow",
        heading: "Run a step again",
        consequences: html! { p { "The tasks of the step run again, and all that depend on them. Those that have not ended are cancelled first." } },
        fields: html! { div.field { label for="retry-from" { "Step" } select #retry-from name="from" { @for name in names(steps) { option value=(name) { (name) } } } } },
        command: format!("dalsegno flow retry {given} --from STEP"),
    };
    let cancel = Confirmation {
        action: Action::of::<CancelFlow>("Cancel flow", "", &fields, &then).class("btn danger"),
        id: "cancel-flow",
        heading: "Cancel this flow",
        consequences: html! { p { "Waiting tasks end at once, running ones through their workers." } },
        fields: html! { div.field { label for="flow-reason" { "Reason" } input #flow-reason name="reason" maxlength="300"; } },
        command: format!("dalsegno flow cancel {given}"),
    };
    html! {
        @match flow.state {
            State::Running => (pause.button(&page.view, &page.caller)),
            State::Paused => (resume.button(&page.view, &page.caller)),
            State::Done | State::Failed | State::Cancelled => (retry.button(&page.view, &page.caller)),
        }
        @if flow.ended_at.is_none() { (cancel.button(&page.view, &page.caller)) }
    }
}

/// The names of the steps, each once.
fn names(steps: &[StepTask]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for step in steps {
        if !names.contains(&step.step.as_str()) {
            names.push(&step.step);
        }
    }
    names
}

fn step_table(steps: &[StepTask]) -> Markup {
    let name_of = |id: &Uuid| steps.iter().find(|step| step.task_id == *id).map(|step| &step.step);
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Step" } th { "Agent" } th { "After" } } }
            tbody {
                @for step in steps {
                    tr {
                        td { (tone(step.state).state(step.state.as_str(), None)) }
                        td.text { a href={ "/tasks/" (step.task_id) } { bdi { (step.step) } } }
                        td { (agent(&step.agent, &step.instance)) }
                        td { @for other in step.after.iter().filter_map(name_of) { bdi { (other) } " " } }
                    }
                }
            }
        }
    }
}

fn table(page: &Page, campaign: Uuid, chosen: Uuid, flows: &[Flow]) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Template" } th { "Started" } th { "By" } } }
            tbody {
                @for flow in flows {
                    tr {
                        td { (state(flow)) }
                        td.text { a href=(target(campaign, flow.id)) aria-current=[(flow.id == chosen).then_some("true")] { bdi { (flow.template) } } }
                        td { (page.view.time(flow.created_at)) }
                        td { @if let Some(by) = &flow.added_by { bdi { (by) } } }
                    }
                }
            }
        }
    }
}
