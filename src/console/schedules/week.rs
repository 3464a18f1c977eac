//! The strip of a week: the moments of each schedule, one column per day.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{HERE, tone};
use crate::{
    console::{
        page::Page,
        parts::{View, url_text, wide},
    },
    domain::schedules::{Schedule, Timetable},
};

/// Today and the seven days after it: a weekly schedule that has fired today has its next moment on the last of them.
const DAYS: u32 = 8;
/// Moments of a day that are listed. More of them are counted.
const MAX_LISTED: usize = 4;
/// Moments that are computed: a bit more than one per minute.
const MAX_MOMENTS: usize = 12_000;

/// Renders the strip in a section with its time zone.
pub(super) fn show(page: &Page, items: &[Schedule]) -> Markup {
    let days = page.view.days(DAYS);
    let table = html! {
        table."folds week" {
            thead { tr { th { "Schedule" } @for (n, day) in days.iter().take(DAYS as usize).enumerate() { th { @if n == 0 { b { "Today, " (page.view.weekday(*day)) } } @else { (page.view.weekday(*day)) } } } } }
            tbody { @for schedule in items { (row(&page.view, schedule, &days)) } }
        }
    };
    html! {
        (wide("Moments of today and the next seven days", &table))
        p."small soft after" { "Times are those of " b { (page.view.zone()) } ", the time zone of the installation (" code { "scheduler.time_zone" } "). A schedule with a time zone of its own says so below its name." }
    }
}

fn row(view: &View, schedule: &Schedule, days: &[DateTime<Utc>]) -> Markup {
    let end = days[days.len() - 1];
    let moments = moments(schedule, view.now, end);
    let words = match (schedule.paused_at, moments.as_slice()) {
        (Some(_), _) => Some("paused: its moments are skipped".to_owned()),
        (None, all) if all.len() > MAX_MOMENTS => Some(format!("more than {MAX_MOMENTS} times")),
        (None, []) => Some("not within these days".to_owned()),
        (None, _) => None,
    };
    html! {
        tr class=(tone(schedule).class()) {
            td.text {
                a href={ (HERE) "/" (url_text(&schedule.name)) } { b { bdi { (schedule.name) } } }
                @if schedule.time_zone != view.zone() { div."tiny faint" { "written in " (schedule.time_zone) } }
            }
            @match words {
                Some(words) => td.soft colspan=(DAYS) { (words) @if let (Some(at), None) = (schedule.next_slot.filter(|at| *at > end), schedule.paused_at) { "; next " (view.calendar(at)) } },
                None => { @for day in days.windows(2) { td { (cell(view, &moments, day)) } } },
            }
        }
    }
}

/// Lists the moments of a day, or counts them.
fn cell(view: &View, moments: &[DateTime<Utc>], day: &[DateTime<Utc>]) -> Markup {
    let own: Vec<_> = moments.iter().filter(|at| (day[0]..day[1]).contains(*at)).collect();
    html! {
        @if own.len() <= MAX_LISTED {
            @for at in own { time.moment datetime=(at.to_rfc3339()) { (view.minute(*at)) } " " }
        } @else {
            b { (own.len()) " times" }
            div."tiny soft" { (view.minute(*own[0])) " to " (view.minute(*own[own.len() - 1])) }
        }
    }
}

/// Returns the moments up to a time, at most one more than are computed. A paused schedule has none.
fn moments(schedule: &Schedule, after: DateTime<Utc>, up_to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    if schedule.paused_at.is_some() {
        return Vec::new();
    }
    let timetable = Timetable::parse(&schedule.cron, &schedule.time_zone);
    timetable.map(|table| table.between(after, up_to, MAX_MOMENTS + 1)).unwrap_or_default()
}
