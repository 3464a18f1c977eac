//! The actions on a flow: pause, resume, retry from a step, cancel.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation},
    },
    domain::{
        flows::{Flow, State, StepTask},
        tasks,
    },
    operations::{CancelFlow, PauseFlow, ResumeFlow, RetryFlow},
};

pub(super) fn actions(page: &Page, flow: &Flow, steps: &[StepTask]) -> Markup {
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
