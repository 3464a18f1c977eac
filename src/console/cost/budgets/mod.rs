//! Budgets of campaigns, agents, users and the day: what is spent, reserved and left, and their limits.

mod forms;
mod row;

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::tabs;
use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{View, capital, coded, empty, icon, next_page, section},
    },
    domain::{
        amount::{self, budget_subject},
        attention::{FAILED_WITHIN, MAX_FAILED_READ, describe_unread},
        audit::{Action as AuditAction, Entry},
        budgets::{OwnedBudget, OwnerKind, Ranking, RankingQuery},
        text::{count, count_read},
    },
    operations::Refusal,
};

const HERE: &str = "/cost/budgets";
/// Budgets of a page. Each has two forms, so more would make the first load larger than 150 KB.
const PER_PAGE: usize = 15;
const FAILED: &str = "/tasks?state=failed";

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
    let refusals = Refusals::load(&page).await?;
    let n_before = query.cursor.parse::<usize>().unwrap_or(0);
    let (n_before, list) = match BudgetList::load(&page, &query.of, &refusals, n_before).await? {
        // Budgets may have been removed since the page before.
        list if list.ranking.items.is_empty() && n_before > 0 => {
            (0, BudgetList::load(&page, &query.of, &refusals, 0).await?)
        }
        list => (n_before, list),
    };
    let items = &list.ranking.items;
    let subjects: Vec<String> = items.iter().map(audit_subject).collect();
    let authors = Authors::load(&page, &subjects).await?;
    let n_budgets = list.ranking.totals.budgets;
    let n_shown = n_before.saturating_add(items.len());
    let has_more = i64::try_from(n_shown).is_ok_and(|n_shown| n_shown < n_budgets);
    let next = has_more.then(|| n_shown.to_string());
    let body = html! {
        div.head { div { h1 { "Cost" } } div.actions { (forms::new(&page)) } }
        @if page.done.is_some() { (set_notes(&page.view, &find_changed(&page, &query.set).await?)) }
        (tabs(HERE))
        @if !query.of.is_empty() { p."small soft" { "Only the budget of " bdi { (query.of) } ". " a href=(HERE) { "Show all" } } }
        @if items.is_empty() && !query.of.is_empty() {
            (empty("This budget has no limit.", "dalsegno budget set"))
        } @else if items.is_empty() {
            (empty("No budget has a limit. Calls are charged, and nothing waits for money.", "dalsegno budget set day --money 20"))
        } @else {
            (list.sentences(&refusals))
            (section("Budgets", &html! { (n_budgets) }, &html! {
                ul."rows budgets" { @for (place, budget) in (n_before..).zip(items) { (row::show(&page, place, budget, &refusals, authors.of(budget))) } }
            }))
        }
        (next_page(HERE, &[("of", &query.of)], next.as_deref()))
        p."small soft after" { "A budget is reserved before each call and charged after it. Reruns are paid from the budgets for reruns of their campaigns, which are not in this list; an eval with a limit has the budget of its campaign, which is in it. Only the budget of the day begins again: all others count all calls of all time, and there is no daily limit of one user. At the hard limit tasks wait or fail; at the soft limit a warning is written. Limits are changed here, or with " code { "dalsegno budget set" } "." }
    };
    let path = html! { a href="/cost" { "Cost" } span { "/" } span { "Budgets" } };
    Ok(page.respond(Content { title: "Budgets", path, body, watch: String::new() }).await?)
}

/// A page of the budgets, with the numbers of all of them.
struct BudgetList {
    ranking: Ranking,
    /// All budgets at which tasks failed that would fail again, among the failures that were read.
    refusing: Vec<OwnedBudget>,
}

impl BudgetList {
    /// Loads a page of all budgets, or of those with this owner and key.
    async fn load(
        page: &Page,
        of: &str,
        refusals: &Refusals,
        n_before: usize,
    ) -> Result<Self, Refusal> {
        let (word, key) = match of.split_once('/') {
            Some((word, key)) => (word, Some(key)),
            None => (of, None),
        };
        let owner = OwnerKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        // No key has a character that the database cannot store.
        if owner.is_none() && !of.is_empty() || of.contains('\0') {
            return Ok(Self { ranking: Ranking::default(), refusing: Vec::new() });
        }
        let is_listed = |budget: &OwnedBudget| {
            owner.is_none_or(|owner| owner == budget.owner)
                && key.is_none_or(|key| key == budget.key)
        };
        let mut refusing = page.caller.find_budgets(&refusals.row_keys()).await?;
        refusing.retain(|budget| is_listed(budget) && refusals.of(budget) > 0);
        let row_keys: Vec<String> = refusing.iter().map(OwnedBudget::row_key).collect();
        let ranking = RankingQuery {
            owner,
            key,
            refusing: &row_keys,
            offset: i64::try_from(n_before).unwrap_or(i64::MAX),
            limit: PER_PAGE as i64,
        };
        let ranking = page.caller.rank_budgets(&ranking).await?;
        Ok(Self { ranking, refusing })
    }

    /// Says of all budgets, also those on other pages, how many refuse calls.
    fn sentences(&self, refusals: &Refusals) -> Markup {
        let totals = &self.ranking.totals;
        let n_refusing = self.refusing.len();
        let n_failed: usize = self.refusing.iter().map(|budget| refusals.of(budget)).sum();
        let failed = match self.refusing.as_slice() {
            [budget] => row::failed_tasks(budget),
            _ => FAILED.to_owned(),
        };
        html! {
            p.lede {
                @if totals.awaited > 0 {
                    b { (count(totals.awaited, "budget has", "budgets have")) } " no space for a next call: " a href="/work/jobs?waits_for=condition" { (count(totals.waiting_tasks, "task waits", "tasks wait")) } ". "
                }
                @if n_refusing > 0 {
                    b { (count(n_refusing, "budget has", "budgets have")) } " refused a call: " a href=(failed) { (refusals.words(n_failed)) } ". Raise the limit, then retry. "
                }
                @match totals.reached {
                    0 if n_refusing > 0 && totals.awaited == 0 => {}
                    0 if totals.awaited > 0 => { "Each of these tasks says how much its call needs." }
                    0 => { "No budget has reached its limit." }
                    n => { b { (count(n, "budget has", "budgets have")) } " reached the limit." }
                }
            }
            @if refusals.is_cut { p."small soft" { (describe_unread(MAX_FAILED_READ)) } }
        }
    }
}

/// The refusals at which tasks have failed within a week.
struct Refusals {
    all: Vec<amount::Refusal>,
    /// True if there may be more failed tasks than those that were read.
    is_cut: bool,
}

impl Refusals {
    async fn load(page: &Page) -> Result<Self, Refusal> {
        let since = page.view.now - FAILED_WITHIN;
        let (all, is_cut) = page.caller.refusals_since(since, MAX_FAILED_READ).await?;
        Ok(Self { all, is_cut })
    }

    /// Returns the row keys of the budgets, each once.
    fn row_keys(&self) -> Vec<String> {
        let row_key = |it: &amount::Refusal| {
            let (owner, key) = it.owner.columns();
            format!("{owner}/{key}")
        };
        let mut all: Vec<String> = self.all.iter().map(row_key).collect();
        all.sort();
        all.dedup();
        all
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
        count_read(n_failed, self.is_cut, "task failed", "tasks failed")
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

/// Finds the budget that a form has just set, which may be on another page of the list.
async fn find_changed(page: &Page, set: &str) -> Result<Vec<OwnedBudget>, Refusal> {
    if set.contains('\0') {
        return Ok(Vec::new());
    }
    let row_key = if set.contains('/') { set.to_owned() } else { format!("{set}/") };
    page.caller.find_budgets(&[row_key]).await
}

/// Says what is unexpected about the limits of budgets that were set.
fn set_notes(view: &View, budgets: &[OwnedBudget]) -> Markup {
    let notes = budgets.iter().flat_map(|budget| notes(view, budget));
    html! { @for note in notes { p.notice role="status" { (icon("waiting")) span { (coded(&note)) "." } } } }
}

/// Says what is unexpected about the limits.
fn notes(view: &View, budget: &OwnedBudget) -> Vec<String> {
    let notes = budget.notes(&|micros| view.money(micros));
    notes.iter().map(|note| capital(note)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        Amount,
        amount::{Limit, OnLimit},
        budgets::BudgetTotals,
    };

    pub(super) fn budget(
        owner: OwnerKind,
        key: &str,
        limit: Option<i64>,
        spent: i64,
    ) -> OwnedBudget {
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
        assert_eq!(refusals.words(1_000), "1000 or more tasks failed");
        assert_eq!(refusals.row_keys(), ["agent/planner"]);
    }

    #[test]
    fn notes_about_the_budget_that_was_set_stand_above_the_list() {
        let view = View::at(chrono::DateTime::UNIX_EPOCH);
        let used_up = set_notes(&view, &[budget(OwnerKind::User, "kim", Some(10), 12)]).0;
        assert!(used_up.contains("is used up"), "{used_up}");
        assert_eq!(set_notes(&view, &[budget(OwnerKind::Day, "", Some(10), 0)]).0, "");
        assert_eq!(set_notes(&view, &[]).0, "");
    }

    #[test]
    fn sentences_are_about_all_budgets_and_not_those_of_the_page() {
        let totals = BudgetTotals { budgets: 300, reached: 2, ..BudgetTotals::default() };
        let ranking = Ranking { items: Vec::new(), totals };
        let refusals = Refusals { all: Vec::new(), is_cut: false };
        let list = BudgetList { ranking, refusing: Vec::new() };
        let shown = list.sentences(&refusals).0;
        assert!(shown.contains("<b>2 budgets have</b> reached the limit."), "{shown}");
        let refusing = vec![budget(OwnerKind::Agent, "planner", Some(10), 1)];
        let ranking = Ranking::default();
        let list = BudgetList { ranking, refusing };
        let shown = list.sentences(&refusals).0;
        assert!(shown.contains("1 budget has") && !shown.contains("No budget"), "{shown}");
        let unread = "Only the newest 1000 failed tasks of the last 7 days were read";
        assert!(!shown.contains(unread), "{shown}");
        let shown = list.sentences(&Refusals { is_cut: true, ..refusals }).0;
        assert!(shown.contains(unread), "{shown}");
    }
}
