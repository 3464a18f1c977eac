//! Budgets of campaigns, agents, users and the day: what is spent, reserved and left, and their limits.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::tabs;
use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{
            Action, Confirmation, Share, View, capital, coded, counted, empty, next_page, section,
            share_bar, shell_word, tokens, url_text,
        },
    },
    domain::{
        Amount,
        amount::{self, Limit, OnLimit, budget_subject, format_money},
        attention::FAILED_WITHIN,
        audit::{Action as AuditAction, Entry},
        budgets::{OwnedBudget, OwnerKind},
    },
    operations::{ChangeBudget, ListBudgets, Listing, MAX_LIMIT, Refusal, SetBudget},
};

const HERE: &str = "/cost/budgets";
/// The list after a form, which names the budget that it has set.
const AFTER_SET: &str = "/cost/budgets?set={owner}/{key}";
/// Budgets of a page. Each has two forms, so more would make the first load larger than 150 KB.
const PER_PAGE: usize = 15;
const FAILED: &str = "/tasks?state=failed";
/// Failed tasks that are read at most.
const MAX_FAILED: i64 = 200;
const HARD_FLAGS: [&str; 2] = ["--money", "--tokens"];
const SOFT_FLAGS: [&str; 2] = ["--warn-money", "--warn-tokens"];

#[derive(Debug, Deserialize)]
pub(in crate::console) struct BudgetQuery {
    #[serde(default)]
    cursor: String,
    /// Only the budget with this owner and key, such as `agent/writer` or `day`: the subject of its lines in the audit log.
    #[serde(default)]
    of: String,
    /// The budget that a form has just set, named like `of`.
    #[serde(default)]
    set: String,
}

pub(in crate::console) async fn show(Query(query): Query<BudgetQuery>, page: Page) -> PageResult {
    let mut listing = list(&page, &query.of).await?;
    let refusals = Refusals::load(&page).await?;
    // Those for which tasks wait, or at which they failed, first, then the nearest to its limit.
    let rank = |budget: &OwnedBudget| urgency(budget, refusals.of(budget));
    listing.items.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    let n_before = query.cursor.parse::<usize>().unwrap_or(0);
    let shown: Vec<_> = listing.items.iter().enumerate().skip(n_before).take(PER_PAGE).collect();
    let subjects: Vec<String> = shown.iter().map(|(_, budget)| audit_subject(budget)).collect();
    let authors = Authors::load(&page, &subjects).await?;
    let n_left = listing.items.len().saturating_sub(n_before.saturating_add(PER_PAGE));
    let next = (n_left > 0).then(|| (n_before + PER_PAGE).to_string());
    let waiting: i64 = listing.items.iter().map(|budget| budget.waiting_tasks).sum();
    let n_reached = listing.items.iter().filter(|budget| is_reached(budget)).count();
    let n_awaited = listing.items.iter().filter(|budget| budget.waiting_tasks > 0).count();
    let refusing: Vec<_> = listing.items.iter().filter(|budget| refusals.of(budget) > 0).collect();
    let n_refusing = refusing.len();
    let n_failed: usize = refusing.iter().map(|budget| refusals.of(budget)).sum();
    let failed = match refusing.as_slice() {
        [budget] => failed_tasks(budget),
        _ => FAILED.to_owned(),
    };
    let body = html! {
        div.head { div { h1 { "Cost" } } div.actions { (new(&page)) } }
        @if page.done.is_some() { (set_notes(&page.view, &listing.items, &query.set)) }
        (tabs(HERE))
        @if !query.of.is_empty() { p."small soft" { "Only the budget of " bdi { (query.of) } ". " a href=(HERE) { "Show all" } } }
        @if listing.items.is_empty() && !query.of.is_empty() {
            (empty("This budget has no limit.", "dalsegno budget set"))
        } @else if listing.items.is_empty() {
            (empty("No budget has a limit. Calls are charged, and nothing waits for money.", "dalsegno budget set day --money 20"))
        } @else {
            p.lede {
                @if n_awaited > 0 {
                    b { (counted(n_awaited, "budget has", "budgets have")) } " no space for a next call: " a href="/work/jobs?waits_for=condition" { (counted(usize::try_from(waiting).unwrap_or(0), "task waits", "tasks wait")) } ". "
                }
                @if n_refusing > 0 {
                    b { (counted(n_refusing, "budget has", "budgets have")) } " refused a call: " a href=(failed) { (refusals.words(n_failed)) } ". Raise the limit, then retry. "
                }
                @match n_reached {
                    0 if n_refusing > 0 && n_awaited == 0 => {}
                    0 if n_awaited > 0 => { "Each of these tasks says how much its call needs." }
                    0 => { "No budget has reached its limit." }
                    n => { b { (counted(n, "budget has", "budgets have")) } " reached the limit." }
                }
            }
            (section("Budgets", &html! { (listing.items.len()) @if listing.next.is_some() { " of more: " code { "dalsegno budget ls" } " lists all" } }, &html! {
                ul."rows budgets" { @for (place, budget) in shown { (row(&page, place, budget, &refusals, authors.of(budget))) } }
            }))
        }
        (next_page(HERE, &[], next.as_deref()))
        p."small soft after" { "A budget is reserved before each call and charged after it. Reruns are paid from the budgets for reruns of their campaigns, which are not in this list; an eval with a limit has the budget of its campaign, which is in it. Only the budget of the day begins again: all others count all calls of all time, and there is no daily limit of one user. At the hard limit tasks wait or fail; at the soft limit a warning is written. Limits are changed here, or with " code { "dalsegno budget set" } "." }
    };
    let path = html! { a href="/cost" { "Cost" } span { "/" } span { "Budgets" } };
    Ok(page.respond(Content { title: "Budgets", path, body, watch: String::new() }).await?)
}

/// Lists all budgets, because the order and the sentence are about all of them; or only the one with this owner and key.
async fn list(page: &Page, of: &str) -> Result<Listing<OwnedBudget>, Refusal> {
    let (word, key) = match of.split_once('/') {
        Some((word, key)) => (word, Some(key.to_owned())),
        None => (of, None),
    };
    let owner = OwnerKind::ALL.into_iter().find(|kind| kind.as_str() == word);
    if owner.is_none() && !of.is_empty() {
        return Ok(Listing { items: Vec::new(), next: None });
    }
    page.caller.run(ListBudgets { owner, key, cursor: None, limit: Some(MAX_LIMIT) }).await
}

/// The refusals at which tasks have failed within a week.
struct Refusals {
    all: Vec<amount::Refusal>,
    /// True if there are more failed tasks than those that were read.
    is_cut: bool,
}

impl Refusals {
    async fn load(page: &Page) -> Result<Self, Refusal> {
        let since = page.view.now - FAILED_WITHIN;
        let failed = page.caller.failed_since(since, MAX_FAILED).await?;
        let is_cut = i64::try_from(failed.len()).is_ok_and(|n| n == MAX_FAILED);
        let all = failed.into_iter().filter_map(|task| Some(task.budget_refusal?.0)).collect();
        Ok(Self { all, is_cut })
    }

    /// Counts the tasks that failed at a budget and would fail again at once.
    fn of(&self, budget: &OwnedBudget) -> usize {
        let is_of = |it: &&amount::Refusal| {
            let (owner, key) = it.owner.columns();
            let would_fail = || budget.check(it.call).is_err_and(|refusal| !refusal.waits());
            owner == budget.owner.as_str() && key == budget.key && would_fail()
        };
        self.all.iter().filter(is_of).count()
    }

    fn words(&self, n_failed: usize) -> String {
        match self.is_cut {
            true => format!("{n_failed} or more tasks failed"),
            false => counted(n_failed, "task failed", "tasks failed"),
        }
    }
}

/// The last change of each of some budgets in the audit log. A caller who may not see the log gets none.
struct Authors(Vec<Entry>);

impl Authors {
    async fn load(page: &Page, subjects: &[String]) -> Result<Self, Refusal> {
        let actions = [AuditAction::BudgetSet, AuditAction::CampaignLimit];
        Ok(Self(page.caller.last_lines(subjects, &actions).await?))
    }

    fn of(&self, budget: &OwnedBudget) -> Option<&Entry> {
        let subject = audit_subject(budget);
        self.0.iter().find(|line| line.subject == subject)
    }
}

/// Returns the subject of a budget in the audit log: a campaign has its id alone.
fn audit_subject(budget: &OwnedBudget) -> String {
    match budget.owner {
        OwnerKind::Campaign => budget.key.clone(),
        _ => budget_subject(budget.owner.as_str(), &budget.key),
    }
}

/// Ranks a budget: the used share of its tighter limit, and more if tasks wait for it or failed at it.
fn urgency(budget: &OwnedBudget, n_failed: usize) -> f64 {
    let OwnedBudget { limit, spent, reserved, .. } = budget;
    let share = |limit: Option<i64>, used: i64| {
        limit.map_or(0.0, |limit| used as f64 / limit.max(1) as f64)
    };
    let used = share(limit.micros, spent.micros + reserved.micros)
        .max(share(limit.tokens, spent.tokens + reserved.tokens));
    used.min(1.0) + if budget.waiting_tasks > 0 || n_failed > 0 { 1.0 } else { 0.0 }
}

/// Returns true if nothing is left of one of its limits.
fn is_reached(budget: &OwnedBudget) -> bool {
    budget.balance().is_used_up()
}

fn owner_word(owner: OwnerKind) -> &'static str {
    match owner {
        OwnerKind::Agent => "Agent",
        OwnerKind::Campaign => "Campaign",
        OwnerKind::Day => "Each day",
        OwnerKind::User => "User",
    }
}

fn row(
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
                @if budget.waiting_tasks > 0 { a."state waiting" href=(waiting_tasks(budget)) { (crate::console::parts::icon("waiting")) span.word { (counted(usize::try_from(budget.waiting_tasks).unwrap_or(0), "task waits", "tasks wait")) } } }
                @if n_failed > 0 { a."state failed" href=(failed_tasks(budget)) { (crate::console::parts::icon("failed")) span.word { (refusals.words(n_failed)) } } }
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
                @for note in notes(view, budget) { p."small after" { (crate::console::parts::icon("waiting")) " " (coded(&note)) "." } }
            }
            div.actions { (forms(page, place, budget)) }
        }
    }
}

/// Says what is unexpected about the budget that a form has just set, which may be on another page of the list.
fn set_notes(view: &View, budgets: &[OwnedBudget], set: &str) -> Markup {
    let subject = |budget: &OwnedBudget| budget_subject(budget.owner.as_str(), &budget.key);
    let set = set.trim_end_matches('/');
    let budget = budgets.iter().find(|budget| subject(budget) == set);
    let notes = budget.map(|budget| notes(view, budget)).unwrap_or_default();
    html! { @for note in notes { p.notice role="status" { (crate::console::parts::icon("waiting")) span { (coded(&note)) "." } } } }
}

/// Says what is unexpected about the limits.
fn notes(view: &View, budget: &OwnedBudget) -> Vec<String> {
    let notes = budget.notes(&|micros| view.money(micros));
    notes.iter().map(|note| capital(note)).collect()
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
fn failed_tasks(budget: &OwnedBudget) -> String {
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

/// Hard and soft limits have forms of their own: a change of a soft limit makes its warning due again.
fn forms(page: &Page, place: usize, budget: &OwnedBudget) -> Markup {
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
    let n_waiting = usize::try_from(*waiting_tasks).unwrap_or(0);
    html! {
        p {
            @if let Some(limit) = limit.micros { (view.money(spent.micros)) " of " (view.money(limit)) " are spent, and " (view.money(reserved.micros)) " are reserved. " }
            @if let Some(limit) = limit.tokens { (tokens(spent.tokens)) " of " (tokens(limit)) " tokens are spent, and " (tokens(reserved.tokens)) " are reserved. " }
            @if n_waiting > 0 { (counted(n_waiting, "task waits", "tasks wait")) " for space. " }
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
fn new(page: &Page) -> Markup {
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

    fn budget(owner: OwnerKind, key: &str, limit: Option<i64>, spent: i64) -> OwnedBudget {
        let amount = |micros| Amount { micros, tokens: 0 };
        OwnedBudget {
            owner,
            key: key.to_owned(),
            name: None,
            period: None,
            time_zone: None,
            ends_at: None,
            limit: Limit { micros: limit, tokens: None },
            soft: Limit::default(),
            spent: amount(spent),
            reserved: amount(0),
            on_limit: OnLimit::Wait,
            warned_at: None,
            waiting_tasks: 0,
            has_campaign: None,
        }
    }

    #[test]
    fn a_budget_is_reached_at_its_limit() {
        assert!(is_reached(&budget(OwnerKind::Day, "", Some(10), 10)));
        assert!(!is_reached(&budget(OwnerKind::Day, "", Some(10), 9)));
        assert!(!is_reached(&budget(OwnerKind::Day, "", None, 9)));
    }

    #[test]
    fn refusals_are_counted_at_the_budget_that_still_refuses() {
        let needed = Amount { micros: 200_000, tokens: 0 };
        let planner = budget(OwnerKind::Agent, "planner", Some(500_000), 450_000);
        let refusals = Refusals { all: vec![planner.check(needed).unwrap_err()], is_cut: true };
        let of = |key, limit, on_limit| {
            let budget = budget(OwnerKind::Agent, key, Some(limit), 450_000);
            refusals.of(&OwnedBudget { on_limit, ..budget })
        };
        assert_eq!(of("planner", 500_000, OnLimit::Fail), 1);
        assert_eq!(of("planner", 500_000, OnLimit::Wait), 0, "a retry waits");
        assert_eq!(of("planner", 100_000, OnLimit::Wait), 1, "the call is larger than the limit");
        assert_eq!(of("planner", 900_000, OnLimit::Fail), 0);
        assert_eq!(of("writer", 500_000, OnLimit::Fail), 0);
        assert_eq!(refusals.words(200), "200 or more tasks failed");
        let planner = budget(OwnerKind::Agent, "planner", None, 0);
        assert_eq!(failed_tasks(&planner), "/tasks?state=failed&agent=planner");
    }

    #[test]
    fn a_command_has_the_limits_and_quotes_the_name() {
        let limit = Limit { micros: Some(2_500_000), tokens: Some(900) };
        let named = format!("user {}", shell_word("Kim B."));
        assert_eq!(
            command(&named, ["--money", "--tokens"], limit),
            "dalsegno budget set user 'Kim B.' --money 2.50 --tokens 900"
        );
    }

    #[test]
    fn notes_about_the_budget_that_was_set_stand_above_the_list() {
        let view = View::at(chrono::DateTime::UNIX_EPOCH);
        let all =
            [budget(OwnerKind::Day, "", Some(10), 0), budget(OwnerKind::User, "kim", Some(10), 12)];
        let notes = |set| set_notes(&view, &all, set).0;
        assert!(notes("user/kim").contains("is used up"), "{}", notes("user/kim"));
        assert_eq!([notes("day/"), notes("user/ann"), notes("")], ["", "", ""]);
    }

    #[test]
    fn a_hostile_key_stays_text() {
        let it = budget(OwnerKind::User, "<b>&x", Some(10), 9);
        assert!(!subject(&it).0.contains("<b>") || subject(&it).0.contains("&lt;b&gt;"));
        assert_eq!(calls_of(&it), "/cost/calls?days=90&user=%3Cb%3E%26x&without_reruns=true");
    }
}
