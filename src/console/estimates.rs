//! Estimates of turns that have not begun: tokens and costs of each way in which the turn could begin.

use maud::{Markup, html};

use super::{
    page::Page,
    parts::{Tone, counted, section, sentence, tokens, wide},
};
use crate::{
    domain::{
        amount::OnLimit,
        budgets::{OwnedBudget, OwnerKind},
        estimates::{Charge, ChargeRange, Estimate, Way, WayEstimate},
    },
    operations::{FlowEstimate, ListBudgets, Refusal, StepEstimate},
};

pub(super) async fn show(page: &Page, estimate: &Estimate) -> Result<Markup, Refusal> {
    let list = ListBudgets { owner: None, key: None, cursor: None, limit: Some(200) };
    let budgets = page.caller.run_if_allowed(list).await?.map_or_else(Vec::new, |list| list.items);
    let campaign = estimate.campaign_id.to_string();
    let pays = |budget: &&OwnedBudget| match budget.owner {
        OwnerKind::Agent => budget.key == estimate.agent,
        OwnerKind::Campaign => budget.key == campaign,
        OwnerKind::Day => true,
        OwnerKind::User => false,
    };
    let end = html! { bdi { (estimate.model) } " on " (estimate.provider) };
    let history = &estimate.history;
    let table = html! {
        table.folds {
            thead { tr { th { "Way" } th.num { "Likely" } th.num { "Low to high" } th.num { "Calls" } th.num { "Tokens in, cached" } th.num { "Out" } } }
            tbody { @for way in &estimate.ways { (row(page, way)) } }
        }
    };
    let next = estimate.ways.iter().find(|way| way.is_next);
    let likely = next.and_then(|way| way.charge).map(|charge| charge.likely);
    let body = html! {
        p."small soft" {
            @match estimate.session_id {
                Some(session) => { "It would be turn " (estimate.turn) " of " a href={ "/sessions/" (session) } { "the open session" } ". " },
                None => "It would open a new session. ",
            }
            "Learnt from " (history.conversation_turns) " turns of the conversation and " (history.agent_turns) " others of the agent. Nothing is sent."
        }
        (wide("Ways", &table))
        @for note in &estimate.notes { p."small soft after" { (sentence(&page.view, note)) } }
        @for budget in budgets.iter().filter(pays) { (left(page, budget, likely)) }
    };
    Ok(section("Estimate", &end, &body))
}

pub(super) fn show_flow(page: &Page, estimate: &FlowEstimate) -> Markup {
    let row = |step: &StepEstimate| {
        html! {
            tr {
                td { bdi { (step.step) } }
                td { bdi { (step.agent) } }
                td.num { (step.tasks) }
                @match &step.charge {
                    Some(charge) => (charges(page, charge)),
                    None => td.num colspan="5" { span.faint { "not possible now" } },
                }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "Step" } th { "Agent" } th.num { "Tasks" } th.num { "Likely" } th.num { "Low to high" } th.num { "Calls" } th.num { "Tokens in, cached" } th.num { "Out" } } }
            tbody { @for step in &estimate.steps { (row(step)) } }
            tfoot { tr { td { "All" } td {} td.num { (estimate.tasks) } (charges(page, &estimate.charge)) } }
        }
    };
    let body = html! {
        (wide("Steps", &table))
        p."small soft after" { "Nothing is started. The results of earlier steps are unknown and not in it. Of the tasks of a step for each item, the first is estimated." }
    };
    section("Estimate", &html! { bdi { (estimate.template) } }, &body)
}

/// Shows why there is no estimate.
pub(super) fn refused(page: &Page, refusal: &Refusal) -> Markup {
    html! { div.error { h2 { "It cannot be estimated" } p { bdi { (sentence(&page.view, &refusal.detail)) } } } }
}

/// Says what is left of a budget that would pay, and if the task would have to wait for it.
fn left(page: &Page, budget: &OwnedBudget, likely: Option<Charge>) -> Markup {
    let OwnedBudget { limit, spent, reserved, .. } = budget;
    let owner = match budget.owner {
        OwnerKind::Agent => "the agent",
        OwnerKind::Campaign => "the campaign",
        OwnerKind::Day => "the day",
        OwnerKind::User => "the user",
    };
    let rest = |limit: i64, spent: i64, reserved: i64| (limit - spent - reserved).max(0);
    let is_short = likely.is_some_and(|likely| {
        let has = |limit: Option<i64>, spent: i64, reserved: i64, needed: i64| {
            limit.is_none_or(|limit| rest(limit, spent, reserved) >= needed)
        };
        let cost = likely.cost_micros.unwrap_or(0);
        let n_tokens = likely.input_tokens + likely.output_tokens;
        !has(limit.micros, spent.micros, reserved.micros, cost)
            || !has(limit.tokens, spent.tokens, reserved.tokens, n_tokens)
    });
    let consequence = match budget.on_limit {
        OnLimit::Wait => "wait",
        OnLimit::Fail => "fail",
    };
    html! {
        p."small after" {
            "The " a href="/cost/budgets" { "budget" } " of " (owner) " has "
            @if let Some(micros) = limit.micros { b { (page.view.money(rest(micros, spent.micros, reserved.micros))) } " " }
            @if let Some(n) = limit.tokens { b { (tokens(rest(n, spent.tokens, reserved.tokens))) " tokens" } " " }
            "left."
            @if is_short { b { " The turn probably does not fit: the task would " (consequence) "." } }
            @if budget.waiting_tasks > 0 { " " (counted(budget.waiting_tasks, "task waits", "tasks wait")) " for it already, so a new one may wait, too." }
        }
    }
}

fn row(page: &Page, way: &WayEstimate) -> Markup {
    let words = match way.way {
        Way::Resume => "resume the conversation",
        Way::CompactFirst => "compact it first",
        Way::NewSession => "begin a new one",
    };
    html! {
        tr.gone[way.impossible.is_some()] {
            td.text { @if way.is_next { (Tone::Running.state(words, Some("the next turn does"))) } @else { (Tone::Queued.state(words, way.impossible.as_deref())) } }
            @match &way.charge {
                Some(charge) => (charges(page, charge)),
                None => td.num colspan="5" { span.faint { "not possible now" } },
            }
        }
    }
}

fn charges(page: &Page, ChargeRange { low, likely, high }: &ChargeRange) -> Markup {
    let money =
        |micros: Option<i64>| micros.map_or_else(|| "?".to_owned(), |it| page.view.money(it));
    html! {
        td.num { b { (money(likely.cost_micros)) } }
        td.num { (money(low.cost_micros)) " to " (money(high.cost_micros)) }
        td.num { (likely.calls) }
        td.num { (tokens(likely.input_tokens)) ", " (tokens(likely.cached_tokens)) }
        td.num { (tokens(likely.output_tokens)) }
    }
}
