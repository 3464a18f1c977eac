//! Schedules: their next moments on the strip of a week, and their actions.

mod form;
pub(super) mod one;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use uuid::Uuid;

use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{Action, Confirmation, Tone, counted, empty, section, title, url_text, wide},
};
use crate::{
    domain::schedules::{Schedule, Source, Timetable},
    operations::{ListSchedules, PauseSchedule, RemoveSchedule, ResumeSchedule, RunSchedule},
};

const HERE: &str = "/schedules";
const DAYS: u32 = 7;
/// Moments within the week from which they are drawn as a band.
const MAX_DOTS: usize = 60;
const ADD: &str = "dalsegno schedule add weekly --campaign CAMPAIGN --agent AGENT --cron \"0 30 7 * * MON\" \"Plan the week.\"";

pub(super) async fn show(page: Page) -> PageResult {
    let mut items = page.caller.run(ListSchedules {}).await?.items;
    items.sort_by_key(|schedule| (schedule.next_slot.is_none(), schedule.next_slot));
    let has_own = items.iter().any(|schedule| schedule.source == Source::User);
    let next = items.iter().filter_map(|schedule| schedule.next_slot).min();
    let choices = form::Choices::load(&page).await?;
    let body = html! {
        div.head {
            div {
                h1 { "Schedules" }
                div.meta { @if let Some(at) = next { span { "The next one fires " (page.view.calendar(at)) } } }
            }
        }
        @if items.is_empty() {
            (empty("No schedule exists. The worker of the upkeep pool writes the nightly cleanup when it starts.", "dalsegno worker upkeep"))
        } @else {
            div.stack {
                (section("The next seven days", &html! { "times of " (page.caller.time_zone()) }, &week(&page, &items)))
                (section("Schedules", &html! { (counted(items.len(), "schedule", "schedules")) }, &table(&page, &items)))
                @if !has_own { (empty("No task recurs yet.", ADD)) }
            }
        }
        div.apart.narrow { (form::show(&page, &choices, None)) }
    };
    let path = html! { span { "Schedules" } };
    Ok(page.respond(Content { title: "Schedules", path, body, watch: String::new() }).await?)
}

/// Draws the moments of each schedule over the days of a week.
fn week(page: &Page, items: &[Schedule]) -> Markup {
    let days = page.view.days(DAYS);
    let (begin, end) = (days[0], days[days.len() - 1]);
    let whole = (end - begin).num_seconds().max(1) as f64;
    let percent = |at: DateTime<Utc>| {
        let share = (at - begin).num_seconds() as f64 / whole * 100.0;
        format!("{:.2}%", share.clamp(0.0, 100.0))
    };
    let mid = |day: usize| format!("{:.2}%", (day as f64 + 0.5) / f64::from(DAYS) * 100.0);
    let now = page.view.now;
    html! {
        div.slots.week {
            div.axis {}
            svg."chart axis" aria-hidden="true" { @for (n, day) in days.iter().take(DAYS as usize).enumerate() { text.mid.strong[n == 0] x=(mid(n)) y="12" { (page.view.weekday(*day)) } } }
            div.axis {}
            @for schedule in items {
                @let moments = moments(schedule, now, end);
                div.lead { b.clip { bdi { (schedule.name) } } }
                svg.chart role="img" aria-label=(label(schedule, moments.len())) {
                    @for day in &days { line.grid x1=(percent(*day)) x2=(percent(*day)) y1="0" y2="28" {} }
                    line.staff x1="0" x2="100%" y1="14" y2="14" {}
                    g class=(tone(schedule).class()) {
                        @if moments.len() > MAX_DOTS {
                            rect.bar-soft x=(percent(now)) y="9" width=(width(&percent(now))) height="10" rx="2" {}
                        } @else {
                            @for at in &moments { circle.bar-tone cx=(percent(*at)) cy="14" r="4" {} }
                        }
                    }
                    line.now x1=(percent(now)) x2=(percent(now)) y1="0" y2="28" {}
                }
                div."small after-slot" {
                    @match schedule.next_slot {
                        Some(at) => (page.view.calendar(at)),
                        None if schedule.paused_at.is_some() => span.faint { "paused" },
                        None => span.faint { "never" },
                    }
                }
            }
        }
    }
}

/// Returns the width of the rest of the axis.
fn width(begin: &str) -> String {
    let begin: f64 = begin.trim_end_matches('%').parse().unwrap_or(0.0);
    format!("{:.2}%", 100.0 - begin)
}

/// Lists the moments up to a time, one more than are drawn at most. A paused schedule has none.
fn moments(schedule: &Schedule, after: DateTime<Utc>, up_to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    if schedule.paused_at.is_some() {
        return Vec::new();
    }
    let timetable = Timetable::parse(&schedule.cron, &schedule.time_zone);
    timetable.map(|table| table.between(after, up_to, MAX_DOTS + 1)).unwrap_or_default()
}

fn label(schedule: &Schedule, n: usize) -> String {
    let n = if n > MAX_DOTS { format!("more than {MAX_DOTS}") } else { n.to_string() };
    format!("{}: {n} moments within the next seven days", schedule.name)
}

fn tone(schedule: &Schedule) -> Tone {
    if schedule.paused_at.is_some() { Tone::Paused } else { Tone::Running }
}

fn table(page: &Page, items: &[Schedule]) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Schedule" } th { "When" } th { "Last" } th { "Next" } th {} } }
            tbody { @for (n, schedule) in items.iter().enumerate() { (row(page, n, schedule)) } }
        }
    };
    wide("Schedules", &table)
}

fn row(page: &Page, n: usize, schedule: &Schedule) -> Markup {
    let word = if schedule.paused_at.is_some() { "paused" } else { "active" };
    html! {
        tr {
            td { (tone(schedule).state(word, schedule.pause_reason.as_deref())) }
            td.text { a href={ (HERE) "/" (url_text(&schedule.name)) } { b { bdi { (schedule.name) } } } div."small soft" { (purpose(schedule)) } }
            td { code { (schedule.cron) } div."tiny faint" { (schedule.time_zone) } }
            td { @if let Some(at) = schedule.last_slot { (page.view.calendar(at)) @if let Some(job) = schedule.last_job_id { div.tiny { a href={ "/work/jobs/" (job) } { "job " (job) } } } } @else { span.faint { "never" } } }
            td { @if let Some(at) = schedule.next_slot { (page.view.calendar(at)) } }
            td { (actions(page, n, schedule)) }
        }
    }
}

/// Describes what a schedule does: the beginning of its prompt and its agent, or the kind of its job.
fn purpose(schedule: &Schedule) -> Markup {
    let text = |name: &str| schedule.payload[name].as_str();
    let campaign = text("campaign_id").and_then(|id| id.parse::<Uuid>().ok());
    html! {
        @match (schedule.source, text("prompt"), text("agent")) {
            (Source::User, Some(prompt), Some(agent)) => {
                bdi { (agent) } ": " bdi { (title(prompt)) }
                @if let Some(campaign) = campaign { " " a href={ "/campaigns/" (campaign) } { "campaign" } }
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
