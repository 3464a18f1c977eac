//! Limits of budgets at which tasks fail, and the links that raise them.

use std::fmt::Display;

use maud::{Markup, html};

use super::{Tone, coded};
use crate::{
    domain::tasks::RefusedRetry,
    http::pages::PageCaller,
    operations::{ChangeBudget, ChangeTaskBudget, Operation as _, SetBudget, Spec},
};

/// Returns true if the caller may raise the limit of a budget, such as `agent/writer`.
pub(in crate::console) fn may_raise(caller: &PageCaller, budget: &str) -> bool {
    caller.may_reach(&raising(budget))
}

/// The form for the limit, on the page of the task.
pub(in crate::console) fn raise_form(task_id: impl Display) -> String {
    format!("/tasks/{task_id}#enough")
}

/// Marks a task whose retry would fail again at its budget or wait for it, with a link to the form for a limit that the caller may raise.
pub(in crate::console) fn refused_retry(caller: &PageCaller, retry: &RefusedRetry) -> Markup {
    let may_raise = retry.budget.as_deref().is_some_and(|budget| may_raise(caller, budget));
    let (tone, effect) = match (retry.flow_id, retry.waits) {
        (Some(_), _) => (Tone::Waiting, "with its flow"),
        (None, true) => (Tone::Waiting, "would wait for its budget"),
        (None, false) => (Tone::Failed, "would fail again"),
    };
    html! {
        div.tiny {
            (tone.state(effect, None)) " " bdi { (coded(&retry.because)) } ". "
            @if let Some(flow) = retry.flow_id { a href={ "/flows/" (flow) } { "The flow" } }
            @if may_raise { a href=(raise_form(retry.task_id)) { "Raise the limit" } @if retry.waits { " to run it at once." } @else { " first." } }
        }
    }
}

/// Returns the operation that raises the limit of a budget.
fn raising(budget: &str) -> Spec {
    match budget.split_once('/') {
        Some(("campaign", _)) => ChangeBudget::SPEC,
        Some(("task", _)) => ChangeTaskBudget::SPEC,
        _ => SetBudget::SPEC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_raised_by_its_own_operation() {
        let ids = ["campaign/1", "task/1", "user/kim", "day"].map(|budget| raising(budget).id);
        assert_eq!(ids, ["change_budget", "change_task_budget", "set_budget", "set_budget"]);
    }
}
