//! Forms that set the limits of a budget.

use maud::{Markup, html};

use super::HERE;
use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, View, shell_word, tokens, url_text},
    },
    domain::{
        amount::{Limit, OnLimit, format_money},
        budgets::{OwnedBudget, OwnerKind},
        text::count,
    },
    operations::{ChangeBudget, SetBudget},
};

/// The list after a form, which names the budget that it has set.
const AFTER_SET: &str = "/cost/budgets?set={owner}/{key}";
const HARD_FLAGS: [&str; 2] = ["--money", "--tokens"];
const SOFT_FLAGS: [&str; 2] = ["--warn-money", "--warn-tokens"];

/// Hard and soft limits have forms of their own: a change of a soft limit makes its warning due again.
pub(super) fn show(page: &Page, place: usize, budget: &OwnedBudget) -> Markup {
    let key = budget.key.as_str();
    let owner = budget.owner.as_str();
    let name = budget.name.as_deref().unwrap_or(key);
    let (named, of) = match budget.owner {
        OwnerKind::Day => (owner.to_owned(), "each day".to_owned()),
        _ => (format!("{owner} {}", shell_word(name)), format!("the {owner} {name}")),
    };
    let state = state_words(&page.view, budget);
    let fields: &[(&str, &str)] = match budget.owner {
        OwnerKind::Campaign => &[("id", key)],
        OwnerKind::Day => &[("owner", owner)],
        OwnerKind::Agent | OwnerKind::User => &[("owner", owner), ("key", key)],
    };
    let then = format!("{HERE}?set={owner}/{}", url_text(key));
    let action = |words| match budget.owner {
        OwnerKind::Campaign => Action::of::<ChangeBudget>(words, "", fields, &then),
        _ => Action::of::<SetBudget>(words, "", fields, &then),
    };
    let (hard_id, soft_id) = (format!("limit-{place}"), format!("warning-{place}"));
    let (hard_words, soft_words) =
        (format!("Change the hard limit of {of}"), format!("Change the soft limit of {of}"));
    let hard = Confirmation {
        action: action("Limit"),
        id: &hard_id,
        heading: &hard_words,
        consequences: html! { (state) p { "Tasks that wait and fit now continue. An empty field removes that limit; a budget without any limit ends." } },
        fields: html! { (limits(page, &hard_id, "", HARD_FLAGS, budget.limit)) (on_limit(&hard_id, budget.on_limit)) },
        command: command(&named, HARD_FLAGS, budget.limit),
    };
    let soft = Confirmation {
        action: action("Warning"),
        id: &soft_id,
        heading: &soft_words,
        consequences: html! { (state) p { "A warning is written once when spending reaches it. Nothing stops." } },
        fields: limits(page, &soft_id, "soft_", SOFT_FLAGS, budget.soft),
        command: command(&named, SOFT_FLAGS, budget.soft),
    };
    html! { (hard.button(&page.view, &page.caller)) (soft.button(&page.view, &page.caller)) }
}

/// Says what is spent and reserved of a budget, and how many tasks wait for it.
fn state_words(view: &View, budget: &OwnedBudget) -> Markup {
    let OwnedBudget { limit, spent, reserved, waiting_tasks, .. } = budget;
    html! {
        p {
            @if let Some(limit) = limit.micros { (view.money(spent.micros)) " of " (view.money(limit)) " are spent, and " (view.money(reserved.micros)) " are reserved. " }
            @if let Some(limit) = limit.tokens { (tokens(spent.tokens)) " of " (tokens(limit)) " tokens are spent, and " (tokens(reserved.tokens)) " are reserved. " }
            @if *waiting_tasks > 0 { (count(*waiting_tasks, "task waits", "tasks wait")) " for space. " }
        }
    }
}

/// Formats the command that sets the limits as they are, to be edited.
fn command(named: &str, [money, tokens]: [&str; 2], limit: Limit) -> String {
    let money = limit.micros.map(|micros| format!(" {money} {}", format_money(micros)));
    let tokens = limit.tokens.map(|n| format!(" {tokens} {n}"));
    let flags = format!("{}{}", money.unwrap_or_default(), tokens.unwrap_or_default());
    format!("dalsegno budget set {named}{flags}")
}

/// The form for a budget that does not exist yet.
pub(super) fn new(page: &Page) -> Markup {
    let new = Confirmation {
        action: Action::of::<SetBudget>("New budget", "plus", &[], AFTER_SET),
        id: "new-budget",
        heading: "Limit an agent, a user or the day",
        consequences: html! { p { "It begins with what the ledger has: of the agent, of the user's campaigns, or of today. Only the budget of the day begins again, at midnight. That of an agent or a user counts all calls of all time: tasks at its limit wait until you raise it. There is no daily limit of one user. Campaigns have their budget on their page." } },
        fields: html! {
            div.field { label for="budget-owner" { "Limit for" } select #budget-owner name="owner" data-flag="" { option value="day" { "each day" } option value="agent" { "an agent" } option value="user" { "a user" } } }
            div.field { label for="budget-key" { "Name of the agent or the user; empty for a day" } input #budget-key name="key" data-flag="" autocomplete="off" maxlength="64"; }
            (limits(page, "new-budget", "", HARD_FLAGS, Limit::default()))
            (on_limit("new-budget", OnLimit::Wait))
        },
        command: "dalsegno budget set".to_owned(),
    };
    new.button(&page.view, &page.caller)
}

fn limits(
    page: &Page,
    of: &str,
    prefix: &str,
    [money_flag, tokens_flag]: [&str; 2],
    limit: Limit,
) -> Markup {
    let (money_id, tokens_id) = (format!("{of}-money"), format!("{of}-tokens"));
    let (money, tokens) = (format!("money:{prefix}micros"), format!("number:{prefix}tokens"));
    html! {
        div.field { label for=(money_id) { "Money in " (page.view.currency()) } input id=(money_id) name=(money) data-flag=(money_flag) data-flag-if-empty=[limit.micros.map(|_| without(money_flag))] inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" placeholder="no limit" autocomplete="off" value=[limit.micros.map(format_money)]; }
        div.field { label for=(tokens_id) { "Tokens" } input id=(tokens_id) name=(tokens) data-flag=(tokens_flag) data-flag-if-empty=[limit.tokens.map(|_| without(tokens_flag))] inputmode="numeric" pattern="[0-9]+" title="A whole number" placeholder="no limit" autocomplete="off" value=[limit.tokens]; }
    }
}

/// Returns the flag that removes a limit.
fn without(flag: &str) -> String {
    format!("--no-{}", flag.trim_start_matches("--"))
}

fn on_limit(of: &str, on_limit: OnLimit) -> Markup {
    let given = format!("{of}-effect");
    html! {
        div.field {
            label for=(given) { "Tasks at the limit" }
            select id=(given) name="on_limit" data-flag="--on-limit" {
                option value="wait" selected[on_limit == OnLimit::Wait] { "wait until there is space" }
                option value="fail" selected[on_limit == OnLimit::Fail] { "fail" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_limits_and_quotes_the_name() {
        let limit = Limit { micros: Some(2_500_000), tokens: Some(900) };
        let named = format!("user {}", shell_word("Kim B."));
        assert_eq!(
            command(&named, ["--money", "--tokens"], limit),
            "dalsegno budget set user 'Kim B.' --money 2.50 --tokens 900"
        );
    }
}
