//! The entries of the rail, with the pages below them. Their words are those of the pages and of the documents.

use maud::{Markup, html};

use super::{page::Page, parts::icon};
use crate::{
    domain::keys::Scope,
    operations::{
        ListAgents, ListBudgets, ListCleanupRuns, ListErasures, ListFacts, ListJobs, ListLanes,
        ListQueues, ListSchedules, ListWebhooks, Operation as _, SearchTexts,
    },
};

/// An entry of the rail.
struct Entry {
    target: &'static str,
    icon: &'static str,
    words: &'static str,
    /// Pages that people look for by their own name.
    below: &'static [(&'static str, &'static str)],
    /// Further pages that belong to the entry.
    others: &'static [&'static str],
}

const WORK: &[Entry] = &[
    entry("/", "overview", "Overview", &[]),
    entry("/search", "search", "Search", &[]),
    entry(
        "/work",
        "work",
        "Work",
        &[("/work/jobs", "Jobs"), ("/work/lanes", "Lanes"), ("/work/bulk", "Bulk actions")],
    ),
    entry("/tasks", "task", "Tasks", &[]),
    entry("/sessions", "talk", "Sessions", &[]),
    entry("/flows", "fork", "Flows", &[]),
    entry("/cost", "cost", "Cost", &[("/cost/budgets", "Budgets"), ("/cost/evals", "Evals")]),
    entry("/catalogue", "agents", "Agents", &[]),
    entry("/schedules", "calendar", "Schedules", &[]),
    entry("/users", "users", "Users", &[]),
];

const INSTALLATION: &[Entry] = &[
    entry("/webhooks", "webhook", "Webhooks", &[]),
    entry("/cleanup", "archive", "Cleanup", &[("/erasures", "Erasures")]),
    Entry {
        others: &["/sign-ins"],
        ..entry("/keys", "key", "API keys", &[("/audit", "Audit log")])
    },
    entry("/doctor", "doctor", "Doctor", &[("/installation", "Installation")]),
];

const fn entry(
    target: &'static str,
    icon: &'static str,
    words: &'static str,
    below: &'static [(&'static str, &'static str)],
) -> Entry {
    Entry { target, icon, words, below, others: &[] }
}

/// The pages about work.
pub(super) fn work(page: &Page) -> Markup {
    list(page, WORK)
}

/// The pages about the installation.
pub(super) fn installation(page: &Page) -> Markup {
    list(page, INSTALLATION)
}

fn list(page: &Page, entries: &[Entry]) -> Markup {
    let path = page.target.split('?').next().unwrap_or_default();
    let may_open = |target: &str| may_open(page, target);
    html! { ul { @for entry in entries { (entry.show(path, may_open)) } } }
}

/// Returns true unless the page refuses this caller for its scopes or its reach.
fn may_open(page: &Page, target: &str) -> bool {
    match target {
        "/search" => page.caller.may_reach(&SearchTexts::SPEC),
        "/users" => page.caller.may_reach(&ListFacts::SPEC),
        "/webhooks" => page.caller.may_reach(&ListWebhooks::SPEC),
        "/work" => page.caller.may_reach(&ListQueues::SPEC),
        "/work/jobs" => page.caller.may_reach(&ListJobs::SPEC),
        "/work/lanes" => page.caller.may_reach(&ListLanes::SPEC),
        "/cost/budgets" => page.caller.may_reach(&ListBudgets::SPEC),
        "/catalogue" => page.caller.may_reach(&ListAgents::SPEC),
        "/schedules" => page.caller.may_reach(&ListSchedules::SPEC),
        "/cleanup" => page.caller.may_reach(&ListCleanupRuns::SPEC),
        "/erasures" => page.caller.may_reach(&ListErasures::SPEC),
        "/keys" | "/audit" | "/doctor" | "/installation" => page.caller.has_scope(Scope::Admin),
        _ => true,
    }
}

impl Entry {
    /// Renders the entry with the pages that the caller may open. Without its own page, the first page below takes its place.
    fn show(&self, path: &str, may_open: impl Fn(&str) -> bool) -> Markup {
        let mut below = self.below.iter().copied().filter(|(target, _)| may_open(target));
        let own = Some((self.target, self.words)).filter(|(target, _)| may_open(target));
        let Some((target, words)) = own.or_else(|| below.next()) else { return html! {} };
        let below: Vec<_> = below.collect();
        let is_below = below.iter().any(|(target, _)| is_at(path, target))
            || self.others.iter().any(|target| is_at(path, target));
        let current = match (is_at(path, target), is_below) {
            (_, true) => Some("true"),
            (true, false) => Some("page"),
            (false, false) => None,
        };
        html! {
            li {
                a href=(target) aria-current=[current] { (icon(self.icon)) span.clip { (words) } }
                @if !below.is_empty() {
                    div.below { @for (target, words) in below { a href=(target) aria-current=[is_at(path, target).then_some("page")] { (words) } } }
                }
            }
        }
    }
}

/// Returns true on a page and on the pages below it.
fn is_at(path: &str, target: &str) -> bool {
    let below = path.strip_prefix(target).filter(|_| target != "/");
    path == target || below.is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_current_on_its_pages() {
        let shown =
            |path: &str| WORK.iter().map(|entry| entry.show(path, |_| true).0).collect::<String>();
        let work = shown("/work/jobs/7");
        assert!(work.contains("href=\"/work\" aria-current=\"true\""), "{work}");
        assert!(work.contains("href=\"/work/jobs\" aria-current=\"page\""), "{work}");
        assert_eq!(work.matches("aria-current").count(), 2, "{work}");
        let overview = shown("/");
        assert!(overview.contains("href=\"/\" aria-current=\"page\""), "{overview}");
        assert_eq!(overview.matches("aria-current").count(), 1, "{overview}");
        assert_eq!(shown("/workers").matches("aria-current").count(), 0);
    }

    #[test]
    fn pages_that_the_caller_may_not_open_are_left_out() {
        let shown = |refused: &[&str]| WORK[2].show("/", |target| !refused.contains(&target)).0;
        let targets = |page: String| -> Vec<String> {
            let links = page.split("<a href=\"").skip(1);
            links.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
        };
        assert_eq!(targets(shown(&["/work/jobs"])), ["/work", "/work/lanes", "/work/bulk"]);
        let only = shown(&["/work", "/work/jobs", "/work/lanes"]);
        assert!(only.contains(">Bulk actions<") && !only.contains("below"), "{only}");
        assert_eq!(targets(only), ["/work/bulk"]);
        assert_eq!(shown(&["/work", "/work/jobs", "/work/lanes", "/work/bulk"]), "");
    }
}
