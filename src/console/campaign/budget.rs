//! The budget of a campaign: what is spent, reserved and left, and its limits in units of the currency.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Share, View, capital, coded, facts, icon, section, share_bar, tokens},
    },
    domain::{
        amount::{Limit, OnLimit, format_money},
        campaign_overview::Overview,
        campaigns::Budget,
    },
    operations::ChangeBudget,
};

pub(super) fn show(page: &Page, overview: &Overview) -> Markup {
    let Some(budget) = &overview.budget else { return html! {} };
    let view = &page.view;
    let body = html! {
        (money(view, budget))
        (in_tokens(budget))
        @for note in budget.balance().notes(&|micros| view.money(micros)) { p."small after" { (icon("waiting")) " " (coded(&capital(&note))) "." } }
        div.after { (facts(&limits(view, budget))) }
        (forms(page, &overview.campaign.id.to_string(), budget))
    };
    let end = html! { @if let Some(limit) = budget.limit.micros { "of " (view.money(limit)) } };
    section("Budget", &end, &body)
}

fn money(view: &View, budget: &Budget) -> Markup {
    let (spent, reserved) = (budget.spent.micros, budget.reserved.micros);
    let share = |name: &str, micros: i64, class| Share {
        name: name.into(),
        value: micros as f64,
        shown: view.money(micros),
        class,
    };
    match budget.limit.micros {
        None => {
            html! { p.small { b { (view.money(spent)) } " spent, " (view.money(reserved)) " reserved. There is no limit in money." } }
        }
        Some(limit) => {
            let shares = [
                share("Spent", spent, "p3"),
                share("Reserved", reserved, "p2"),
                share("Left", (limit - spent - reserved).max(0), "p7"),
            ];
            let mark = budget.soft.micros.map(|soft| soft as f64);
            html! {
                (share_bar("Money spent, reserved and left", &shares, limit as f64, mark))
                @if spent + reserved > limit { p."small after" { "Spent and reserved are " (view.money(spent + reserved - limit)) " above the limit." } }
            }
        }
    }
}

fn in_tokens(budget: &Budget) -> Markup {
    let (spent, reserved) = (budget.spent.tokens, budget.reserved.tokens);
    let share = |name: &str, n: i64, class| Share {
        name: name.into(),
        value: n as f64,
        shown: tokens(n),
        class,
    };
    match budget.limit.tokens {
        None => {
            html! { p."small soft after" { (tokens(spent)) " tokens spent, " (tokens(reserved)) " reserved." } }
        }
        Some(limit) => {
            let shares = [
                share("Tokens spent", spent, "p3"),
                share("Reserved", reserved, "p2"),
                share("Left", (limit - spent - reserved).max(0), "p7"),
            ];
            let mark = budget.soft.tokens.map(|soft| soft as f64);
            html! { div.after { (share_bar("Tokens spent, reserved and left", &shares, limit as f64, mark)) } }
        }
    }
}

fn limits(view: &View, budget: &Budget) -> Vec<(&'static str, Markup)> {
    let limit = |limit: Limit| match (limit.micros, limit.tokens) {
        (None, None) => html! { span.soft { "none" } },
        (micros, n) => html! {
            @if let Some(micros) = micros { (view.money(micros)) }
            @if micros.is_some() && n.is_some() { ", " }
            @if let Some(n) = n { (tokens(n)) " tokens" }
        },
    };
    vec![
        ("Hard limit", limit(budget.limit)),
        ("Soft limit", limit(budget.soft)),
        (
            "At the limit",
            html! { @match budget.on_limit { OnLimit::Wait => "tasks wait", OnLimit::Fail => "tasks fail" } },
        ),
        ("Counts", html! { "all calls of all time" }),
        (
            "For reruns",
            match budget.experiments.limit_micros {
                Some(limit) => {
                    html! { (view.money(budget.experiments.spent_micros)) " of " (view.money(limit)) }
                }
                None => html! { span.soft { "none" } },
            },
        ),
    ]
}

/// Hard and soft limits have forms of their own: a change of a soft limit makes its warning due again.
fn forms(page: &Page, given: &str, budget: &Budget) -> Markup {
    let fields = [("id", given)];
    let here = format!("/campaigns/{given}");
    let change = Action::of::<ChangeBudget>("Change", "", &fields, &here);
    if !change.is_allowed(&page.caller) {
        return html! {};
    }
    let form = |body: &Markup| change.form(&page.view, body);
    let currency = page.view.currency();
    html! {
        details.after {
            summary { "Change the hard limit" }
            (form(&html! {
                (amount(currency, "limit", "Limit", "money:micros", budget.limit.micros))
                (count("limit-tokens", "Limit in tokens", "number:tokens", budget.limit.tokens))
                div.field {
                    label for="on-limit" { "Tasks at the limit" }
                    select #on-limit name="on_limit" {
                        option value="wait" selected[budget.on_limit == OnLimit::Wait] { "wait until there is space" }
                        option value="fail" selected[budget.on_limit == OnLimit::Fail] { "fail" }
                    }
                }
                (end())
            }))
        }
        details.after {
            summary { "Change the soft limit" }
            (form(&html! {
                p."small soft" { "A warning is written once when spending reaches it. Nothing stops." }
                (amount(currency, "soft", "Soft limit", "money:soft_micros", budget.soft.micros))
                (count("soft-tokens", "Soft limit in tokens", "number:soft_tokens", budget.soft.tokens))
                (end())
            }))
        }
        details.after {
            summary { "Change the budget for reruns" }
            (form(&html! { (amount(currency, "reruns", "Limit of reruns", "money:experiments_micros", budget.experiments.limit_micros)) (end()) }))
        }
    }
}

fn amount(currency: &str, id: &str, words: &str, name: &str, micros: Option<i64>) -> Markup {
    let value = micros.map(format_money);
    html! { div.field { label for=(id) { (words) " in " (currency) } input id=(id) name=(name) inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" placeholder="none" autocomplete="off" value=[value]; } }
}

fn count(id: &str, words: &str, name: &str, n: Option<i64>) -> Markup {
    html! { div.field { label for=(id) { (words) } input id=(id) name=(name) inputmode="numeric" pattern="[0-9.]+[kKmM]?" title="A whole number, also as 250k or 1.5M" placeholder="none" autocomplete="off" value=[n]; } }
}

fn end() -> Markup {
    html! { p."small soft after" { "An empty field removes the limit." } div."actions after" { button.btn { "Set" } } }
}
