//! The sentence that says where a flow is, why it waits, and what has to happen.

use maud::{Markup, html};
use uuid::Uuid;

use super::state_words;
use crate::{
    console::{
        page::Page,
        parts::{counted, duration, icon, sentence},
    },
    domain::{
        audit::describe_label,
        explanations::Explanation,
        flows::{CriticalPath, FlowDetail, State, StepTask},
        tasks,
    },
    operations::{ExplainTask, Refusal},
};

/// Explains why the first step that could run does not. `None`: a step runs, or all have ended.
pub(super) async fn explain_wait<'a>(
    page: &Page,
    FlowDetail { flow, steps }: &'a FlowDetail,
) -> Result<Option<(&'a StepTask, Explanation)>, Refusal> {
    let runs = |step: &StepTask| step.state == tasks::State::Running;
    if flow.state != State::Running || steps.iter().any(runs) {
        return Ok(None);
    }
    let is_open =
        |id: &Uuid| steps.iter().any(|step| step.task_id == *id && !step.state.has_ended());
    let is_next = |step: &&StepTask| !step.state.has_ended() && !step.after.iter().any(is_open);
    let Some(step) = steps.iter().find(is_next) else { return Ok(None) };
    let explanation = page.caller.run_if_allowed(ExplainTask { id: step.task_id }).await?;
    Ok(explanation.map(|explanation| (step, explanation)))
}

/// Says in a sentence where the flow is, and what has to happen.
pub(super) fn explain(
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
        .filter(|step| !step.state.has_ended())
        .collect();
    let took = flow.ended_at.map(|at| duration(at - flow.created_at));
    html! {
        section.explain.(tone.class()) #explain tabindex="-1" aria-label="Explanation" {
            (icon(tone.icon()))
            div {
                p.lede {
                    @match flow.state {
                        State::Running if running.is_empty() && wait.is_some() => { "No step runs now: " (counted(flow.open, "task has", "tasks have")) " not ended." }
                        State::Running if running.is_empty() => { "No step runs now: " (counted(flow.open, "task waits", "tasks wait")) " for a worker or for steps before." }
                        State::Running => { @for (place, step) in running.iter().enumerate() { @if place > 0 { ", " } (step_link(step)) } @if running.len() == 1 { " runs" } @else { " run" } @if let Some(time) = running.iter().filter_map(|step| step.duration(page.view.now)).max() { ", for " (duration(time)) } ". " (flow.done) " of " (flow.tasks) " tasks are done." }
                        State::Paused => { "The flow is paused" @if let Some(at) = flow.paused_at { " since " (page.view.calendar(at)) } @if let Some(author) = paused_by { " by " bdi title=(author) { (describe_label(author)) } } ": no step starts until it is resumed." }
                        State::Done => { "All " (flow.tasks) " tasks are done" @if let Some(took) = &took { ", after " (took) } "." }
                        State::Failed => { (counted(failed.len(), "task has failed", "tasks have failed")) ": " @for (place, step) in failed.iter().enumerate() { @if place > 0 { ", " } (step_link(step)) } "." }
                        State::Cancelled => { (counted(flow.cancelled, "task was cancelled", "tasks were cancelled")) "; " (flow.done) " of " (flow.tasks) " are done." }
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

pub(super) fn step_link(step: &StepTask) -> Markup {
    html! { a href={ "/tasks/" (step.task_id) } { bdi { (step.step) } } }
}
