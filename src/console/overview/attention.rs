//! The list of things that wait for a person, each with the action or the page that resolves it.

use maud::{Markup, html};

use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{
            Action, Tone, agent_name, empty, icon, may_raise, raise_form, section, sentence, title,
            url_text,
        },
    },
    domain::{
        attention::{
            Attention, Kind, count_group, count_members, describe_cut, describe_group,
            lacks_members, retry_steps,
        },
        tasks::FailureTotals,
    },
    operations::{
        EnableWebhook, ReleaseLane, ReplayWebhook, ResumeAgent, ResumeAgentEverywhere,
        ResumeCampaign, ResumeCredential, ResumeQueue, ResumeSchedule, RetryFlow, RetryTask,
        RunCleanup,
    },
};

/// Tasks of a group that are named.
const MAX_NAMED: usize = 3;

pub(super) fn show(
    page: &Page,
    groups: &[Vec<&Attention>],
    failures: &FailureTotals,
    names: &Names,
) -> Markup {
    let body = html! {
        (opt_in())
        @if groups.is_empty() {
            (empty("Nothing waits for a person: no failed task within a week, nothing held, paused or over its budget, and no warning.", "dalsegno doctor"))
        } @else {
            ul."rows attention" {
                @for group in groups {
                    @match group.as_slice() {
                        [item] if item.unlisted.is_none() => (entry(page, item, names)),
                        equal => (equal_failures(page, equal, failures.is_cut, names)),
                    }
                }
            }
        }
        @if let Some(note) = describe_cut(failures) { p."small soft" { (note) } }
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

/// Renders tasks that failed with the same error as one row. There may be more than were read, if their reading was cut.
fn equal_failures(page: &Page, failures: &[&Attention], is_cut: bool, names: &Names) -> Markup {
    let (tone, word) = look(Kind::FailedTask);
    let n_more = usize::try_from(count_group(failures)).unwrap_or(0).saturating_sub(MAX_NAMED);
    let newest = failures.iter().filter_map(|it| it.since).max();
    // The limit may allow the smaller calls of a group.
    let refused = failures.iter().find(|it| may_raise_limit(page, it));
    html! {
        li data-at=[newest.map(|at| at.to_rfc3339())] {
            (tone.state(word, None))
            div {
                h3 { (count_members(failures, is_cut)) " " (describe_group(failures)) }
                p dir="auto" { bdi { (sentence(&page.view, &failures[0].because)) @if failures[0].present.is_some() && is_open(&failures[0].because) { "." } } " " (present(page, failures[0])) @if let Some(at) = newest { span.faint { (page.view.time(at)) } } }
                p."small clip" {
                    @for (place, it) in failures.iter().take(MAX_NAMED).enumerate() { @if place > 0 { ", " } a href={ "/tasks/" (it.subject) } { bdi { (title(&it.name)) } } (campaign(it, names)) }
                    @if n_more > 0 { " and " (n_more) " more" }
                }
            }
            div.actions {
                @if let Some(it) = refused { a."btn slim" href=(raise_form(&it.subject)) { "Raise the limit" } }
                (retry_all(page, failures, is_cut))
                a."btn slim quiet" href=(group_target(failures[0])) { "Details" }
            }
        }
    }
}

/// Renders the retry of a group: of a flow from the step, or its page if several steps have failed; else of all listed tasks, with a preview.
fn retry_all(page: &Page, failures: &[&Attention], is_cut: bool) -> Markup {
    let first = failures[0];
    if first.flow_id.is_some() {
        return match retry_steps(failures).len() {
            // The limit has its own button.
            1 if !may_raise_limit(page, first) => fix(page, first),
            _ => html! {},
        };
    }
    let ids: Vec<String> = failures.iter().map(|it| format!("id={}", it.subject)).collect();
    let retry = format!("/tasks/selected?action=retry&{}", ids.join("&"));
    let which = if is_cut || lacks_members(failures) { "the newest" } else { "all" };
    html! { @if Action::of::<RetryTask>("", "", &[], "/").is_allowed(&page.caller) { a."btn slim" href=(retry) { "Retry " (which) " " (failures.len()) "…" } } }
}

/// Returns the page that lists the tasks of a group: for steps that of their flow.
pub(super) fn group_target(first: &Attention) -> String {
    match first.flow_id {
        Some(flow) => format!("/flows/{flow}"),
        None => "/tasks?state=failed".to_owned(),
    }
}

/// Returns true for a task that failed at a budget whose limit the caller may raise.
fn may_raise_limit(page: &Page, item: &Attention) -> bool {
    item.refusing_budget().is_some_and(|budget| may_raise(&page.caller, budget))
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
                    bdi { (sentence(&page.view, &item.because)) @if (item.until.is_some() || item.present.is_some()) && is_open(&item.because) { "." } } " " (present(page, item))
                    @if let Some(until) = item.until { "It continues " (page.view.time(until)) ". " }
                    @if let Some(since) = item.since { span.faint { @if item.until.is_some() { "Since " } (page.view.time(since)) @if item.until.is_some() { "." } } }
                }
                @for command in std::iter::once(&item.command).chain(&item.then) { p."tiny narrow-off" { code { (command) } } }
            }
            div.actions { (fix(page, item)) (details(item)) }
        }
    }
}

/// Renders the present amounts of a budget apart from the error of its task.
fn present(page: &Page, item: &Attention) -> Markup {
    html! { @if let Some(present) = &item.present { bdi { "Now " (sentence(&page.view, present)) @if is_open(present) { "." } } " " } }
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
        Kind::ProviderWait => (Tone::Waiting, "waiting"),
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
    if may_raise_limit(page, item) {
        return html! { a."btn slim" href=(raise_form(&item.subject)) { "Raise the limit" } };
    }
    let since = item.replay_since.map(|at| at.to_rfc3339()).unwrap_or_default();
    let deliveries = [("id", subject), ("since", since.as_str())];
    let flow = item.flow_id.map(|id| id.to_string()).unwrap_or_default();
    let step = [("id", flow.as_str()), ("from", item.step.as_deref().unwrap_or_default())];
    let action = match (item.kind, item.campaign_id) {
        (Kind::FailedTask, _) if item.step.is_some() => {
            Action::of::<RetryFlow>("Retry the flow", "", &step, "/")
        }
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
        (Kind::BusyModel | Kind::ProviderWait, _) => {
            ("Its tasks", "/work/jobs?waits_for=provider".to_owned())
        }
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
        Attention::of(kind, subject, because.to_owned(), String::new())
    }

    #[test]
    fn a_task_that_failed_at_a_budget_leads_to_its_limit() {
        let budget = Some("day".to_owned());
        let refused = Attention { budget, ..item(Kind::FailedTask, "1", "too large") };
        assert_eq!(refused.refusing_budget(), Some("day"));
        assert_eq!(Attention { budget: None, ..refused.clone() }.refusing_budget(), None);
        assert_eq!(Attention { kind: Kind::SpentBudget, ..refused }.refusing_budget(), None);
    }

    #[test]
    fn a_group_of_steps_leads_to_its_flow() {
        let failed = item(Kind::FailedTask, "1", "no login");
        assert_eq!(group_target(&failed), "/tasks?state=failed");
        let step = Attention { flow_id: Some(uuid::Uuid::nil()), ..failed };
        assert_eq!(group_target(&step), "/flows/00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn each_kind_has_a_page_or_an_action() {
        for kind in [Kind::HeldJobs, Kind::SpentBudget, Kind::DesertedQueue, Kind::DeadJobs] {
            assert!(details(&item(kind, "a b", "")).0.contains("href"), "{kind:?}");
        }
        assert!(details(&item(Kind::HeldLane, "a b", "")).0.contains("name=a%20b"));
    }
}
