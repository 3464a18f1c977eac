//! Buttons that remove what a task waits for.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, capital, coded, url_text},
    },
    domain::{
        amount::{Owner, Refusal, Unit, format_money},
        explanations::Obstacle,
    },
    operations::{
        ChangeBudget, ChangeTaskBudget, ListBudgets, Operation as _, ReleaseJob, ReleaseLane,
        ResumeAgent, ResumeAgentEverywhere, ResumeCampaign, ResumeFlow, RetryJob, SetBudget,
        ShowJob, ShowLane,
    },
};

const BUDGETS: &str = "/cost/budgets";

/// Renders a button, and a link to the thing, for each obstacle.
pub(super) fn show(page: &Page, here: &str, obstacles: &[Obstacle]) -> Markup {
    html! {
        @if !obstacles.is_empty() { div."actions remedies" { @for obstacle in obstacles { (remedy(page, here, obstacle)) } } }
    }
}

fn remedy(page: &Page, here: &str, obstacle: &Obstacle) -> Markup {
    let button = |action: Action<'_>| action.button(&page.view, &page.caller);
    match obstacle {
        Obstacle::CampaignPause { campaign_id } => {
            let given = campaign_id.to_string();
            let fields = [("id", given.as_str())];
            button(Action::of::<ResumeCampaign>("Resume the campaign", "running", &fields, here))
        }
        Obstacle::AgentPause { agent, campaign_id: Some(campaign_id) } => {
            let given = campaign_id.to_string();
            let fields = [("id", given.as_str()), ("name", agent.as_str())];
            button(Action::of::<ResumeAgent>("Resume the agent", "running", &fields, here))
        }
        Obstacle::AgentPause { agent, campaign_id: None } => {
            let fields = [("name", agent.as_str())];
            let words = "Resume the agent in all campaigns";
            button(Action::of::<ResumeAgentEverywhere>(words, "running", &fields, here))
        }
        Obstacle::FlowPause { flow_id } => {
            let given = flow_id.to_string();
            let fields = [("id", given.as_str())];
            html! {
                (button(Action::of::<ResumeFlow>("Resume the flow", "running", &fields, here)))
                a."btn quiet" href={ "/flows/" (flow_id) } { "The flow" }
            }
        }
        Obstacle::HeldJob { job_id } => {
            let given = job_id.to_string();
            let fields = [("id", given.as_str())];
            html! {
                (button(Action::of::<ReleaseJob>("Release", "", &fields, here)))
                @if page.caller.may_reach(&ShowJob::SPEC) { a."btn quiet" href={ "/work/jobs/" (job_id) } { "The held job" } }
            }
        }
        Obstacle::HeldLane { lane } => {
            let fields = [("name", lane.as_str())];
            html! {
                (button(Action::of::<ReleaseLane>("Release the lane", "", &fields, here)))
                @if page.caller.may_reach(&ShowLane::SPEC) { a."btn quiet" href={ "/work/lanes?name=" (url_text(lane)) } { "The lane" } }
            }
        }
        Obstacle::Budget(refusal) => budget(page, here, refusal),
        Obstacle::Later { job_id } => {
            let given = job_id.to_string();
            let fields = [("id", given.as_str())];
            button(Action::of::<RetryJob>("Run now", "running", &fields, here))
        }
    }
}

/// Renders the open form that raises the limit at which a task has failed, and the retry behind it.
pub(super) fn raise_and_retry(
    page: &Page,
    here: &str,
    refusal: &Refusal,
    retry: &Markup,
) -> Markup {
    let (owner, key) = refusal.owner.columns();
    let fields = [("id", key.as_str()), ("owner", owner), ("key", key.as_str())];
    let Some((action, target)) = raise(refusal, &fields, here) else { return html! { (retry) } };
    let form = html! {
        (limit(page, refusal))
        p."small soft" { "The amount in the field allows the call of this task. Then retry the task." }
        div."actions after" {
            button.btn.primary { "Raise the limit of " (coded(&refusal.owner.describe())) }
            @if is_open(page, &target) { a."btn quiet" href=(target) { "The budget" } }
        }
    };
    html! {
        @if action.is_allowed(&page.caller) { div.after { (action.form(&page.view, &form)) } }
        div."actions after" { (retry) }
    }
}

/// Returns the action that raises a limit, and the page of the budget. `fields` are its id, its owner and its key.
fn raise<'a>(
    refusal: &Refusal,
    fields: &'a [(&'a str, &'a str); 3],
    here: &'a str,
) -> Option<(Action<'a>, String)> {
    let words = "Raise the limit";
    Some(match &refusal.owner {
        Owner::Campaign(campaign) => (
            Action::of::<ChangeBudget>(words, "", &fields[..1], here),
            format!("/campaigns/{campaign}"),
        ),
        Owner::Task(_) => {
            (Action::of::<ChangeTaskBudget>(words, "", &fields[..1], here), String::new())
        }
        // A task does not wait for the budget of reruns.
        Owner::Experiments(_) => return None,
        Owner::Day(_) => {
            (Action::of::<SetBudget>(words, "", &fields[1..2], here), BUDGETS.to_owned())
        }
        Owner::Agent(_) | Owner::User(_) => {
            (Action::of::<SetBudget>(words, "", &fields[1..], here), BUDGETS.to_owned())
        }
    })
}

/// Returns true if a budget has a page that the caller may see.
fn is_open(page: &Page, target: &str) -> bool {
    match target {
        "" => false,
        BUDGETS => page.caller.may_reach(&ListBudgets::SPEC),
        _ => true,
    }
}

/// The form for a limit that allows the next call, and a link to the budget.
fn budget(page: &Page, here: &str, refusal: &Refusal) -> Markup {
    let (owner, key) = refusal.owner.columns();
    let fields = [("id", key.as_str()), ("owner", owner), ("key", key.as_str())];
    let Some((action, target)) = raise(refusal, &fields, here) else { return html! {} };
    let confirmation = Confirmation {
        action,
        id: "raise-limit",
        heading: "Raise the hard limit",
        consequences: html! { p { (coded(&capital(&refusal.amounts()))) "." } p { "Tasks that wait and fit now continue. The amount in the field allows the next call of this task." } },
        fields: limit(page, refusal),
        command: refusal.raise_command().trim_matches('`').to_owned(),
    };
    html! {
        (confirmation.button(&page.view, &page.caller))
        @if is_open(page, &target) { a."btn quiet" href=(target) { (coded(&capital(&refusal.owner.describe()))) } }
    }
}

fn limit(page: &Page, refusal: &Refusal) -> Markup {
    let enough = refusal.sufficient_limit();
    html! {
        div.field {
            @match refusal.unit {
                Unit::Money => {
                    label for="enough" { "Limit in " (page.view.currency()) }
                    input #enough name="money:micros" inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" required autocomplete="off" value=(format_money(enough));
                }
                Unit::Tokens => {
                    label for="enough" { "Limit in tokens" }
                    input #enough name="number:tokens" inputmode="numeric" pattern="[0-9]+" title="A whole number" required autocomplete="off" value=(enough);
                }
            }
        }
    }
}
