//! The list of things that wait for a person, each with the action or the page that resolves it.

use maud::{Markup, html};

use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{
            Action, Tone, agent_name, counted, empty, icon, section, sentence, title, url_text,
        },
    },
    domain::attention::{Attention, Kind},
    operations::{
        ChangeBudget, ChangeTaskBudget, EnableWebhook, Operation as _, ReleaseLane, ReplayWebhook,
        ResumeAgent, ResumeAgentEverywhere, ResumeCampaign, ResumeCredential, ResumeQueue,
        ResumeSchedule, RetryTask, RunCleanup, SetBudget, Spec,
    },
};

/// Tasks of a group that are named.
const MAX_NAMED: usize = 3;

pub(super) fn show(page: &Page, groups: &[Vec<&Attention>], names: &Names) -> Markup {
    let body = html! {
        (opt_in())
        @if groups.is_empty() {
            (empty("Nothing waits for a person: no failed task within a week, nothing held, paused or over its budget, and no warning.", "dalsegno doctor"))
        } @else {
            ul."rows attention" {
                @for group in groups {
                    @match group.as_slice() {
                        [item] => (entry(page, item, names)),
                        failures => (equal_failures(page, failures, names)),
                    }
                }
            }
        }
    };
    let end = html! { @if !groups.is_empty() { (groups.len()) " open, worst first" } };
    section("Needs attention", &end, &body)
}

/// The switch for notifications, which a script shows where the browser has them.
fn opt_in() -> Markup {
    html! {
        p.notify data-notify hidden {
            button."btn slim quiet" type="button" aria-pressed="false" { (icon("live")) span data-words { "Notify me in this browser" } }
            span."small soft" data-note role="status" {}
        }
    }
}

/// Puts tasks together that failed with the same error, at the place of the newest. Each group is one thing that needs a person.
pub(super) fn groups(items: &[Attention]) -> Vec<Vec<&Attention>> {
    let mut groups: Vec<Vec<&Attention>> = Vec::new();
    let is_same = |group: &Vec<&Attention>, item: &Attention| {
        let first = group[0];
        // Budgets may refuse calls with the same amounts, and each has a limit of its own.
        let is_same_budget = || refusing_budget(first) == refusing_budget(item);
        item.kind == Kind::FailedTask
            && first.kind == item.kind
            && first.because == item.because
            && is_same_budget()
    };
    for item in items {
        match groups.iter_mut().find(|group| is_same(group, item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Renders tasks that failed with the same error as one row.
fn equal_failures(page: &Page, failures: &[&Attention], names: &Names) -> Markup {
    let (tone, word) = look(Kind::FailedTask);
    let ids: Vec<String> = failures.iter().map(|it| format!("id={}", it.subject)).collect();
    let retry = format!("/tasks/selected?action=retry&{}", ids.join("&"));
    let newest = failures.iter().filter_map(|it| it.since).max();
    html! {
        li data-at=[newest.map(|at| at.to_rfc3339())] {
            (tone.state(word, None))
            div {
                h3 { (counted(failures.len(), "task", "tasks")) " with the same error" }
                p dir="auto" { bdi { (sentence(&page.view, &failures[0].because)) } " " @if let Some(at) = newest { span.faint { (page.view.time(at)) } } }
                p."small clip" {
                    @for (place, it) in failures.iter().take(MAX_NAMED).enumerate() { @if place > 0 { ", " } a href={ "/tasks/" (it.subject) } { bdi { (title(&it.name)) } } (campaign(it, names)) }
                    @if failures.len() > MAX_NAMED { " and " (failures.len() - MAX_NAMED) " more" }
                }
            }
            div.actions {
                @if may_raise(page, failures[0]) { a."btn slim" href=(raise_form(failures[0])) { "Raise the limit" } }
                @if Action::of::<RetryTask>("", "", &[], "/").is_allowed(&page.caller) { a."btn slim" href=(retry) { "Retry all " (failures.len()) "…" } }
                a."btn slim quiet" href="/tasks?state=failed" { "Details" }
            }
        }
    }
}

/// Returns the budget at which a task failed, such as `agent/writer`, if it would refuse a retry, too.
pub(super) fn refusing_budget(item: &Attention) -> Option<&str> {
    item.budget.as_deref().filter(|_| item.kind == Kind::FailedTask)
}

/// Returns true for a task that failed at a budget whose limit the caller may raise.
fn may_raise(page: &Page, item: &Attention) -> bool {
    refusing_budget(item).is_some_and(|budget| page.caller.may(&raising(budget)))
}

/// Returns the operation that raises the limit of a budget.
fn raising(budget: &str) -> Spec {
    match budget.split_once('/') {
        Some(("campaign", _)) => ChangeBudget::SPEC,
        Some(("task", _)) => ChangeTaskBudget::SPEC,
        _ => SetBudget::SPEC,
    }
}

/// The form for the limit, on the page of the task.
fn raise_form(item: &Attention) -> String {
    format!("/tasks/{}#enough", url_text(&item.subject))
}

/// Names the campaign of an entry, unless the entry is about the campaign itself.
fn campaign(item: &Attention, names: &Names) -> Markup {
    let is_other = !matches!(item.kind, Kind::PausedCampaign | Kind::SpentBudget);
    html! { @if let Some(id) = item.campaign_id.filter(|_| is_other) { span."faint small" { " in " (names.campaign(id)) } } }
}

fn entry(page: &Page, item: &Attention, names: &Names) -> Markup {
    let (tone, word) = look(item.kind);
    html! {
        li data-at=[item.since.map(|at| at.to_rfc3339())] {
            (tone.state(word, None))
            div {
                h3 { bdi { (name(item)) } @if let Some(agent) = item.agent.as_ref().filter(|_| item.kind != Kind::HeldLane) { " " span."faint small" { bdi { (agent) } } } (campaign(item, names)) }
                p dir="auto" {
                    bdi { (sentence(&page.view, &item.because)) @if item.until.is_some() && is_open(&item.because) { "." } } " "
                    @if let Some(until) = item.until { "It continues " (page.view.time(until)) ". " }
                    @if let Some(since) = item.since { span.faint { @if item.until.is_some() { "Since " } (page.view.time(since)) @if item.until.is_some() { "." } } }
                }
                @for command in std::iter::once(&item.command).chain(&item.then) { p."tiny narrow-off" { code { (command) } } }
            }
            div.actions { (fix(page, item)) (details(item)) }
        }
    }
}

/// Returns true if a text has no punctuation at its end, so that a further sentence would run into it.
fn is_open(text: &str) -> bool {
    !text.trim_end().ends_with(['.', '!', '?', '…'])
}

/// Names the subject: a lane of a conversation by its agent.
fn name(item: &Attention) -> String {
    let mut parts = item.subject.splitn(3, '/').skip(1);
    match (item.kind, item.campaign_id, parts.next(), parts.next()) {
        (Kind::HeldLane, Some(_), Some(agent), Some(instance)) => {
            format!("Conversation of {}", agent_name(agent, instance))
        }
        (Kind::HeldLane, ..) => format!("Lane {}", title(&item.name)),
        _ => title(&item.name),
    }
}

pub(super) fn look(kind: Kind) -> (Tone, &'static str) {
    match kind {
        Kind::FailedTask => (Tone::Failed, "failed"),
        Kind::HeldJobs | Kind::HeldLane => (Tone::Held, "held"),
        Kind::BusyModel => (Tone::Failed, "refuses"),
        Kind::PausedQueue | Kind::PausedCampaign | Kind::PausedAgent => (Tone::Paused, "paused"),
        Kind::PausedCredential => (Tone::Waiting, "waiting"),
        Kind::SpentBudget | Kind::SpentTaskBudget => (Tone::Waiting, "budget"),
        Kind::DesertedQueue => (Tone::Waiting, "no worker"),
        Kind::DeadJobs | Kind::BrokenAgentFiles => (Tone::Failed, "failed"),
        Kind::DisabledWebhook => (Tone::Failed, "disabled"),
        Kind::FailingWebhook => (Tone::Failed, "failing"),
        Kind::FailedDeliveries => (Tone::Failed, "undelivered"),
        Kind::PausedCleanup => (Tone::Paused, "paused"),
        Kind::OverdueCleanup | Kind::OldTransaction => (Tone::Waiting, "overdue"),
    }
}

fn fix(page: &Page, item: &Attention) -> Markup {
    let subject = item.subject.as_str();
    let (id, name) = ([("id", subject)], [("name", subject)]);
    let campaign = item.campaign_id.map(|id| id.to_string()).unwrap_or_default();
    let agent = [("id", campaign.as_str()), ("name", subject)];
    if may_raise(page, item) {
        return html! { a."btn slim" href=(raise_form(item)) { "Raise the limit" } };
    }
    let since = item.replay_since.map(|at| at.to_rfc3339()).unwrap_or_default();
    let deliveries = [("id", subject), ("since", since.as_str())];
    let action = match (item.kind, item.campaign_id) {
        (Kind::FailedTask, _) => Action::of::<RetryTask>("Retry", "", &id, "/"),
        (Kind::HeldLane, _) => Action::of::<ReleaseLane>("Release", "", &name, "/"),
        (Kind::PausedCampaign, _) => Action::of::<ResumeCampaign>("Resume", "", &id, "/"),
        (Kind::PausedAgent, Some(_)) => Action::of::<ResumeAgent>("Resume", "", &agent, "/"),
        (Kind::PausedAgent, None) => Action::of::<ResumeAgentEverywhere>("Resume", "", &name, "/"),
        (Kind::PausedQueue, _) => Action::of::<ResumeQueue>("Resume", "", &name, "/"),
        (Kind::PausedCredential, _) => Action::of::<ResumeCredential>("Resume", "", &name, "/"),
        (Kind::DisabledWebhook, _) => Action::of::<EnableWebhook>("Enable", "", &id, "/"),
        (Kind::FailedDeliveries, _) => Action::of::<ReplayWebhook>("Replay", "", &deliveries, "/"),
        (Kind::PausedCleanup, _) => Action::of::<ResumeSchedule>("Resume", "", &name, "/"),
        (Kind::OverdueCleanup, _) => Action::of::<RunCleanup>("Clean up now", "", &[], "/"),
        _ => return html! {},
    };
    action.class("btn slim").button(&page.view, &page.caller)
}

/// Links to the page of the subject, where it can be changed.
fn details(item: &Attention) -> Markup {
    html! { @if let Some((words, target)) = page_of(item) { a."btn slim quiet" href=(target) { (words) } } }
}

/// Returns the page of the thing, if it has one.
pub(super) fn target(item: &Attention) -> Option<String> {
    page_of(item).map(|(_, target)| target)
}

fn page_of(item: &Attention) -> Option<(&'static str, String)> {
    let subject = url_text(&item.subject);
    Some(match (item.kind, item.campaign_id) {
        (Kind::FailedTask, _) => ("Details", format!("/tasks/{subject}")),
        (Kind::SpentTaskBudget, _) => ("Raise the limit", format!("/tasks/{subject}#task-limit")),
        (Kind::SpentBudget, Some(campaign)) => {
            ("Raise the limit", format!("/campaigns/{campaign}#limit"))
        }
        (Kind::SpentBudget, None) => ("Raise the limit", "/cost/budgets".to_owned()),
        (Kind::BusyModel, _) => ("Its tasks", "/work/jobs?waits_for=snooze".to_owned()),
        (Kind::HeldLane, _) => ("The lane", format!("/work/lanes?name={subject}")),
        (Kind::HeldJobs, _) => ("The jobs", format!("/work/jobs?state=held&queue={subject}")),
        (Kind::DeadJobs, _) => ("The jobs", format!("/work/jobs?state=dead&queue={subject}")),
        (Kind::DesertedQueue | Kind::PausedQueue, _) => {
            ("The queue", format!("/work?queue={subject}"))
        }
        (Kind::BrokenAgentFiles, _) => ("The files", "/catalogue".to_owned()),
        (Kind::FailingWebhook | Kind::DisabledWebhook, _) => {
            ("The webhook", format!("/webhooks/{subject}"))
        }
        (Kind::FailedDeliveries, _) => {
            ("The deliveries", format!("/webhooks/{subject}?state=failed"))
        }
        (Kind::PausedCleanup | Kind::OverdueCleanup, _) => ("Cleanup", "/cleanup".to_owned()),
        (Kind::OldTransaction | Kind::PausedCredential, _) => ("Doctor", "/doctor".to_owned()),
        (Kind::PausedAgent, None) => ("The agent", format!("/catalogue/agent/{subject}")),
        (Kind::PausedCampaign | Kind::PausedAgent, Some(campaign)) => {
            ("Details", format!("/campaigns/{campaign}"))
        }
        (Kind::PausedCampaign, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: Kind, subject: &str, because: &str) -> Attention {
        Attention {
            kind,
            subject: subject.to_owned(),
            name: subject.to_owned(),
            agent: None,
            campaign_id: None,
            because: because.to_owned(),
            command: String::new(),
            then: None,
            budget: None,
            replay_since: None,
            since: None,
            until: None,
            count: None,
        }
    }

    #[test]
    fn tasks_with_the_same_error_are_one_group() {
        let items = [
            item(Kind::FailedTask, "1", "no login"),
            item(Kind::FailedTask, "2", "refused"),
            item(Kind::HeldJobs, "turns", "no login"),
            item(Kind::FailedTask, "3", "no login"),
        ];
        let of = |group: &Vec<&Attention>| {
            group.iter().map(|it| it.subject.clone()).collect::<Vec<_>>().join(" ")
        };
        let found: Vec<_> = groups(&items).iter().map(of).collect();
        assert_eq!(found, ["1 3", "2", "turns"]);
    }

    #[test]
    fn a_task_that_failed_at_a_budget_leads_to_its_limit() {
        let budget = Some("day".to_owned());
        let refused = Attention { budget, ..item(Kind::FailedTask, "1", "too large") };
        assert_eq!(refusing_budget(&refused), Some("day"));
        assert_eq!(raise_form(&refused), "/tasks/1#enough");
        assert_eq!(refusing_budget(&Attention { budget: None, ..refused.clone() }), None);
        assert_eq!(refusing_budget(&Attention { kind: Kind::SpentBudget, ..refused }), None);
    }

    #[test]
    fn equal_refusals_of_two_budgets_are_two_groups() {
        let refused = |id: &str, agent: &str| Attention {
            budget: Some(format!("agent/{agent}")),
            ..item(Kind::FailedTask, id, "this call may cost up to 0.80")
        };
        let items = [refused("1", "planner"), refused("2", "writer"), refused("3", "planner")];
        assert_eq!(groups(&items).iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn each_limit_is_raised_by_its_own_operation() {
        let ids = ["campaign/1", "task/1", "user/kim", "day"].map(|budget| raising(budget).id);
        assert_eq!(ids, ["change_budget", "change_task_budget", "set_budget", "set_budget"]);
    }

    #[test]
    fn each_kind_has_a_page_or_an_action() {
        for kind in [Kind::HeldJobs, Kind::SpentBudget, Kind::DesertedQueue, Kind::DeadJobs] {
            assert!(details(&item(kind, "a b", "")).0.contains("href"), "{kind:?}");
        }
        assert!(details(&item(Kind::HeldLane, "a b", "")).0.contains("name=a%20b"));
    }
}
