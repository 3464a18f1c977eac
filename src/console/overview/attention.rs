//! The list of things that wait for a person, each with the action or the page that resolves it.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Tone, empty, icon, section, title},
    },
    domain::attention::{Attention, Kind},
    operations::{
        EnableWebhook, ResumeCampaign, ResumeCredential, ResumeQueue, ResumeSchedule, RetryTask,
        RunCleanup,
    },
};

pub(super) fn show(page: &Page, items: &[Attention]) -> Markup {
    let body = html! {
        (opt_in())
        @if items.is_empty() {
            (empty("Nothing waits for a person: no failed task within a week, nothing held, paused or over its budget, and no warning.", "dalsegno doctor"))
        } @else {
            ul."rows attention" { @for item in items { (entry(page, item)) } }
        }
    };
    let end = html! { @if !items.is_empty() { (items.len()) " open, worst first" } };
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

fn entry(page: &Page, item: &Attention) -> Markup {
    let (tone, word) = look(item.kind);
    html! {
        li data-at=[item.since.map(|at| at.to_rfc3339())] {
            (tone.state(word, None))
            div {
                h3 { bdi { (title(&item.name)) } @if let Some(agent) = &item.agent { " " span."faint small" { bdi { (agent) } } } }
                p dir="auto" {
                    (item.because) " "
                    @if let Some(until) = item.until { "It continues " (page.view.time(until)) ". " }
                    @if let Some(since) = item.since { span.faint { (page.view.time(since)) } }
                }
                p."tiny narrow-off" { code { (item.command) } }
            }
            div.actions { (fix(page, item)) (details(item)) }
        }
    }
}

pub(super) fn look(kind: Kind) -> (Tone, &'static str) {
    match kind {
        Kind::FailedTask => (Tone::Failed, "failed"),
        Kind::HeldJobs => (Tone::Held, "held"),
        Kind::PausedQueue | Kind::PausedCampaign | Kind::PausedAgent => (Tone::Paused, "paused"),
        Kind::PausedCredential => (Tone::Waiting, "waiting"),
        Kind::SpentBudget => (Tone::Waiting, "budget"),
        Kind::DesertedQueue => (Tone::Waiting, "no worker"),
        Kind::DeadJobs | Kind::BrokenAgentFiles => (Tone::Failed, "failed"),
        Kind::DisabledWebhook => (Tone::Failed, "disabled"),
        Kind::FailingWebhook => (Tone::Failed, "failing"),
        Kind::PausedCleanup => (Tone::Paused, "paused"),
        Kind::OverdueCleanup | Kind::OldTransaction => (Tone::Waiting, "overdue"),
    }
}

fn fix(page: &Page, item: &Attention) -> Markup {
    let subject = item.subject.as_str();
    let (id, name) = ([("id", subject)], [("name", subject)]);
    let action = match item.kind {
        Kind::FailedTask => Action::of::<RetryTask>("Retry", "", &id, "/"),
        Kind::PausedCampaign => Action::of::<ResumeCampaign>("Resume", "", &id, "/"),
        Kind::PausedQueue => Action::of::<ResumeQueue>("Resume", "", &name, "/"),
        Kind::PausedCredential => Action::of::<ResumeCredential>("Resume", "", &name, "/"),
        Kind::DisabledWebhook => Action::of::<EnableWebhook>("Enable", "", &id, "/"),
        Kind::PausedCleanup => Action::of::<ResumeSchedule>("Resume", "", &name, "/"),
        Kind::OverdueCleanup => Action::of::<RunCleanup>("Clean up now", "", &[], "/"),
        Kind::HeldJobs
        | Kind::PausedAgent
        | Kind::SpentBudget
        | Kind::DesertedQueue
        | Kind::DeadJobs
        | Kind::BrokenAgentFiles
        | Kind::FailingWebhook
        | Kind::OldTransaction => return html! {},
    };
    action.class("btn slim").button(&page.view, &page.caller)
}

fn details(item: &Attention) -> Markup {
    html! { @if let Some(target) = target(item) { a."btn slim quiet" href=(target) { "Details" } } }
}

/// Returns the page of the thing, if it has one.
pub(super) fn target(item: &Attention) -> Option<String> {
    match (item.kind, item.campaign_id) {
        (Kind::FailedTask, _) => Some(format!("/tasks/{}", item.subject)),
        (_, Some(campaign)) => Some(format!("/campaigns/{campaign}")),
        (_, None) => None,
    }
}
