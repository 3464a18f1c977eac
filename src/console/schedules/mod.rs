//! Schedules: their next moments on the strip of a week, and their actions.

mod form;
pub(super) mod one;
mod week;

use maud::{Markup, html};
use uuid::Uuid;

use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{Action, Confirmation, Tone, counted, empty, section, title, url_text, wide},
};
use crate::{
    domain::schedules::{Schedule, Source},
    operations::{ListSchedules, PauseSchedule, RemoveSchedule, ResumeSchedule, RunSchedule},
};

const HERE: &str = "/schedules";
const ADD: &str = "dalsegno schedule add weekly --campaign CAMPAIGN --agent AGENT --cron \"0 30 7 * * MON\" \"Plan the week.\"";

pub(super) async fn show(page: Page) -> PageResult {
    let mut items = page.caller.run(ListSchedules {}).await?.items;
    items.sort_by_key(|schedule| {
        (schedule.next_slot.is_none(), schedule.next_slot, schedule.name.clone())
    });
    let has_own = items.iter().any(|schedule| schedule.source == Source::User);
    let next = items.first().and_then(|schedule| Some((schedule, schedule.next_slot?)));
    let names = Names::load(&page).await?;
    let choices = form::Choices::load(&page, "").await?;
    let body = html! {
        div.head {
            div {
                h1 { "Schedules" }
                div.meta { @if let Some((schedule, at)) = next { span { "Next: " a href={ (HERE) "/" (url_text(&schedule.name)) } { bdi { (schedule.name) } } ", " (page.view.calendar(at)) } } }
            }
        }
        @if items.is_empty() {
            (empty("No schedule exists. The worker of the upkeep pool writes the nightly cleanup when it starts.", "dalsegno worker upkeep"))
        } @else {
            div.stack {
                (section("Today and the next seven days", &html! { "times of " (page.view.zone()) }, &week::show(&page, &items)))
                (section("Schedules", &html! { (counted(items.len(), "schedule", "schedules")) }, &table(&page, &items, &names)))
                @if !has_own { (empty("No task recurs yet.", ADD)) }
            }
        }
        div.apart.narrow { (form::show(&page, &choices, None)) }
    };
    let path = html! { span { "Schedules" } };
    Ok(page.respond(Content { title: "Schedules", path, body, watch: String::new() }).await?)
}

fn tone(schedule: &Schedule) -> Tone {
    if schedule.paused_at.is_some() { Tone::Paused } else { Tone::Running }
}

fn table(page: &Page, items: &[Schedule], names: &Names) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Schedule" } th { "When" } th { "Last" } th { "Next" } th {} } }
            tbody { @for (n, schedule) in items.iter().enumerate() { (row(page, n, schedule, names)) } }
        }
    };
    wide("Schedules", &table)
}

fn row(page: &Page, n: usize, schedule: &Schedule, names: &Names) -> Markup {
    let word = if schedule.paused_at.is_some() { "paused" } else { "active" };
    html! {
        tr {
            td { (tone(schedule).state(word, schedule.pause_reason.as_deref())) }
            td.text.name { a href={ (HERE) "/" (url_text(&schedule.name)) } { b { bdi { (schedule.name) } } } div."small soft" { (purpose(schedule, names)) } }
            td { code { (schedule.cron) } div."tiny faint" { "in " (schedule.time_zone) } }
            td { @if let Some(at) = schedule.last_slot { (page.view.calendar(at)) @if let Some(job) = schedule.last_job_id { div.tiny { a href={ "/work/jobs/" (job) } { "job " (job) } } } } @else { span.faint { "never" } } }
            td.moment { @if let Some(at) = schedule.next_slot { (page.view.calendar(at)) } }
            td { (actions(page, n, schedule)) }
        }
    }
}

/// Describes what a schedule does: the beginning of its prompt and its agent, or the kind of its job.
fn purpose(schedule: &Schedule, names: &Names) -> Markup {
    let text = |name: &str| schedule.payload[name].as_str();
    let campaign = text("campaign_id").and_then(|id| id.parse::<Uuid>().ok());
    html! {
        @match (schedule.source, text("prompt"), text("agent")) {
            (Source::User, Some(prompt), Some(agent)) => {
                bdi { (agent) } ": " bdi { (title(prompt)) }
                @if let Some(campaign) = campaign { ", in " (names.campaign(campaign)) }
            },
            (Source::User, ..) => (schedule.kind.replace('_', " ")),
            (Source::BuiltIn, ..) => { (schedule.kind.replace('_', " ")) ", set by the configuration" },
        }
    }
}

fn actions(page: &Page, n: usize, schedule: &Schedule) -> Markup {
    let name = schedule.name.as_str();
    let fields = [("name", name)];
    let run = Action::of::<RunSchedule>("Run now", "", &fields, HERE).class("btn slim");
    let resume = Action::of::<ResumeSchedule>("Resume", "", &fields, HERE).class("btn slim");
    let (pause_id, reason_id) = (format!("pause-{n}"), format!("reason-{n}"));
    let pause = Confirmation {
        action: Action::of::<PauseSchedule>("Pause", "", &fields, HERE).class("btn slim"),
        id: &pause_id,
        heading: "Pause this schedule",
        consequences: html! { p { "Its moments are skipped until it is resumed. They are not caught up." } },
        fields: html! { div.field { label for=(reason_id) { "Reason, shown while it is paused" } input id=(reason_id) name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno schedule pause {name}"),
    };
    let remove_id = format!("remove-{n}");
    let remove = Confirmation {
        action: Action::of::<RemoveSchedule>("Remove", "", &fields, HERE).class("btn slim danger"),
        id: &remove_id,
        heading: "Remove this schedule",
        consequences: html! { p { "It fires no more. Tasks that it has added stay." } },
        fields: html! {},
        command: format!("dalsegno schedule rm {name}"),
    };
    let (view, caller) = (&page.view, &page.caller);
    html! {
        div.actions {
            (run.button(view, caller))
            @if schedule.paused_at.is_some() { (resume.button(view, caller)) } @else { (pause.button(view, caller)) }
            @if schedule.source == Source::User { (remove.button(view, caller)) }
        }
    }
}
