//! A budget in the list: its amounts, the tasks that it refuses, and its last change.

use maud::{Markup, html};

use super::{FAILED, Refusals, forms, notes};
use crate::{
    console::{
        page::Page,
        parts::{Share, View, coded, icon, share_bar, tokens, url_text},
    },
    domain::{
        Amount,
        amount::{Limit, OnLimit},
        audit::Entry,
        budgets::{OwnedBudget, OwnerKind},
        text::count,
    },
};

fn owner_word(owner: OwnerKind) -> &'static str {
    match owner {
        OwnerKind::Agent => "Agent",
        OwnerKind::Campaign => "Campaign",
        OwnerKind::Day => "Each day",
        OwnerKind::User => "User",
    }
}

pub(super) fn show(
    page: &Page,
    place: usize,
    budget: &OwnedBudget,
    refusals: &Refusals,
    changed: Option<&Entry>,
) -> Markup {
    let view = &page.view;
    let n_failed = refusals.of(budget);
    html! {
        li {
            div.owner {
                span."faint tiny" { (owner_word(budget.owner)) }
                div { b { (subject(budget)) } }
                @if budget.waiting_tasks > 0 { a."state waiting" href=(waiting_tasks(budget)) { (icon("waiting")) span.word { (count(budget.waiting_tasks, "task waits", "tasks wait")) } } }
                @if n_failed > 0 { a."state failed" href=(failed_tasks(budget)) { (icon("failed")) span.word { (refusals.words(n_failed)) } } }
                @if let Some(line) = changed { p."small soft" { "Last changed by " a href={ "/audit?subject=" (url_text(&line.subject)) } { bdi { @if line.actor.is_empty() { (line.actor_kind.replace('_', " ")) } @else { (line.actor) } } } ", " (view.time(line.at)) } }
                @if let Some(at) = budget.warned_at { p."small soft" { "Warned " (view.time(at)) } }
                @match budget.ends_at {
                    Some(at) => { p."small soft" { "Begins again " (view.time(at)) } }
                    None => { p."small soft" { "Counts all calls of all time" } }
                }
            }
            div.amounts {
                (money(view, budget))
                (in_tokens(budget))
                p."small soft after" { (limit_words(view, "Soft limit", budget.soft)) @match budget.on_limit { OnLimit::Wait => "At the limit tasks wait.", OnLimit::Fail => "At the limit tasks fail." } }
                @for note in notes(view, budget) { p."small after" { (icon("waiting")) " " (coded(&note)) "." } }
            }
            div.actions { (forms::show(page, place, budget)) }
        }
    }
}

fn limit_words(view: &View, words: &str, limit: Limit) -> Markup {
    html! {
        @if limit.micros.is_some() || limit.tokens.is_some() {
            (words) ": "
            @if let Some(micros) = limit.micros { (view.money(micros)) @if limit.tokens.is_some() { ", " } }
            @if let Some(n) = limit.tokens { (tokens(n)) " tokens" }
            ". "
        }
    }
}

fn subject(budget: &OwnedBudget) -> Markup {
    let key = &budget.key;
    match budget.owner {
        OwnerKind::Campaign => {
            html! { a href={ "/campaigns/" (key) } { bdi { (budget.name.as_deref().unwrap_or(key)) } } }
        }
        OwnerKind::Agent => html! { a href={ "/catalogue/agent/" (key) } { bdi { (key) } } },
        OwnerKind::User => html! { bdi { (key) } },
        OwnerKind::Day => html! { @if let Some(day) = budget.period { (day) } },
    }
}

/// Jobs that wait for a budget; of a campaign, its own.
fn waiting_tasks(budget: &OwnedBudget) -> String {
    let all = "/work/jobs?waits_for=condition";
    match budget.owner {
        OwnerKind::Campaign => format!("{all}&campaign_id={}", budget.key),
        OwnerKind::Agent | OwnerKind::Day | OwnerKind::User => all.to_owned(),
    }
}

/// Failed tasks, of a campaign or an agent its own.
pub(super) fn failed_tasks(budget: &OwnedBudget) -> String {
    match budget.owner {
        OwnerKind::Campaign => format!("{FAILED}&campaign_id={}", budget.key),
        OwnerKind::Agent => format!("{FAILED}&agent={}", url_text(&budget.key)),
        OwnerKind::Day | OwnerKind::User => FAILED.to_owned(),
    }
}

/// The calls that the budget has paid.
fn calls_of(budget: &OwnedBudget) -> String {
    let key = url_text(&budget.key);
    let of = match (budget.owner, budget.period) {
        (OwnerKind::Campaign, _) => format!("days=90&campaign_id={key}"),
        (OwnerKind::Agent, _) => format!("days=90&agent={key}"),
        (OwnerKind::User, _) => format!("days=90&user={key}"),
        (OwnerKind::Day, Some(day)) => format!("from={day}&to={day}"),
        (OwnerKind::Day, None) => "days=1".to_owned(),
    };
    format!("/cost/calls?{of}&without_reruns=true")
}

fn money(view: &View, budget: &OwnedBudget) -> Markup {
    let shown = |micros| view.money(micros);
    bar(budget, "Money", budget.limit.micros, budget.soft.micros, |amount| amount.micros, &shown)
}

fn in_tokens(budget: &OwnedBudget) -> Markup {
    let pick = |amount: Amount| amount.tokens;
    bar(budget, "Tokens", budget.limit.tokens, budget.soft.tokens, pick, &tokens)
}

/// Draws what is spent, reserved and left of a limit; without one, says what is spent.
fn bar(
    budget: &OwnedBudget,
    words: &str,
    limit: Option<i64>,
    soft: Option<i64>,
    pick: impl Fn(Amount) -> i64,
    shown: &dyn Fn(i64) -> String,
) -> Markup {
    let (spent, reserved) = (pick(budget.spent), pick(budget.reserved));
    let Some(limit) = limit else {
        return html! { @if soft.is_some() { p.small { a href=(calls_of(budget)) { (shown(spent)) } " spent, " (shown(reserved)) " reserved; no hard limit" } } };
    };
    let share = |name: &str, n: i64, class| Share {
        name: name.to_owned(),
        value: n as f64,
        shown: shown(n),
        class,
    };
    let left = (limit - spent - reserved).max(0);
    let shares =
        [share("Spent", spent, "p3"), share("Reserved", reserved, "p2"), share("Left", left, "p7")];
    let label = format!("{words} spent, reserved and left");
    html! {
        div.budget-bar {
            p.small { b { (shown(left)) } " left of " (shown(limit)) @if words == "Tokens" { " tokens" } ", " (percent_used(spent + reserved, limit)) " used · " a href=(calls_of(budget)) { "its calls" } }
            (share_bar(&label, &shares, limit as f64, soft.map(|soft| soft as f64)))
        }
    }
}

fn percent_used(used: i64, limit: i64) -> String {
    // A budget that is not used up is never shown as 100 %.
    let percent = (used as f64 / limit.max(1) as f64 * 100.0).floor();
    format!("{percent:.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::cost::budgets::tests::budget;

    #[test]
    fn failed_tasks_of_an_agent_are_listed_alone() {
        let planner = budget(OwnerKind::Agent, "planner", None, 0);
        assert_eq!(failed_tasks(&planner), "/tasks?state=failed&agent=planner");
    }

    #[test]
    fn a_hostile_key_stays_text() {
        let it = budget(OwnerKind::User, "<b>&x", Some(10), 9);
        assert_eq!(subject(&it).0, "<bdi>&lt;b&gt;&amp;x</bdi>");
        assert_eq!(calls_of(&it), "/cost/calls?days=90&user=%3Cb%3E%26x&without_reruns=true");
    }
}
