//! The strip of a week: the moments of each schedule, one column per day.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{HERE, tone};
use crate::{
    console::{
        page::Page,
        parts::{View, duration, url_text, wide},
    },
    domain::schedules::{Schedule, Timetable},
};

/// Today and the seven days after it: a weekly schedule that has fired today has its next moment on the last of them.
const DAYS: u32 = 8;
/// Moments of a day that are listed. More of them are counted.
const MAX_LISTED: usize = 4;
/// Moments of a schedule that are computed, in the request for the page.
const MAX_MOMENTS: usize = 200;

/// The first moments of a schedule, in order.
struct Moments {
    items: Vec<DateTime<Utc>>,
    /// True if there are more of them than items.
    is_cut: bool,
}

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
    let moments = Moments::of(schedule, view.now, end);
    let words = match (schedule.paused_at, moments.items.is_empty()) {
        (Some(_), _) => Some("paused: its moments are skipped".to_owned()),
        (None, true) => Some("not within these days".to_owned()),
        (None, false) => moments.density(),
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
fn cell(view: &View, moments: &Moments, day: &[DateTime<Utc>]) -> Markup {
    let place = |at: DateTime<Utc>| moments.items.partition_point(|moment| *moment < at);
    let own = &moments.items[place(day[0])..place(day[1])];
    let has_more = moments.is_cut && moments.items.last().is_none_or(|last| *last < day[1]);
    html! {
        @if own.len() <= MAX_LISTED {
            @for at in own { time.moment datetime=(at.to_rfc3339()) { (view.minute(*at)) } " " }
        } @else {
            b { (own.len()) " times" }
            div."tiny soft" { (view.minute(own[0])) " to " (view.minute(own[own.len() - 1])) }
        }
        @if has_more { span."tiny faint" { @if own.is_empty() { "not listed" } @else { "and more" } } }
    }
}

impl Moments {
    /// Computes the first moments up to a time. A paused schedule has none.
    fn of(schedule: &Schedule, after: DateTime<Utc>, up_to: DateTime<Utc>) -> Self {
        if schedule.paused_at.is_some() {
            return Self { items: Vec::new(), is_cut: false };
        }
        let timetable = Timetable::parse(&schedule.cron, &schedule.time_zone);
        let items = timetable.map(|table| table.between(after, up_to, MAX_MOMENTS + 1));
        let mut items = items.unwrap_or_default();
        let is_cut = items.len() > MAX_MOMENTS;
        items.truncate(MAX_MOMENTS);
        Self { items, is_cut }
    }

    /// Describes moments of which there are too many to list, if they follow each other evenly.
    fn density(&self) -> Option<String> {
        let mut gaps = self.items.windows(2).map(|pair| pair[1] - pair[0]);
        let first = gaps.next().filter(|_| self.is_cut)?;
        let words = duration(first);
        // Two units, of which the second may be zero.
        let gap = words.split(" 0 ").next().unwrap_or_default();
        gaps.all(|gap| gap == first).then(|| format!("every {gap}, more than {MAX_MOMENTS} times"))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn moments(gaps: &[i64], is_cut: bool) -> Moments {
        let mut at = DateTime::UNIX_EPOCH;
        let next = |minutes: &i64| {
            at += TimeDelta::minutes(*minutes);
            at
        };
        Moments { items: gaps.iter().map(next).collect(), is_cut }
    }

    #[test]
    fn only_even_moments_that_are_cut_are_put_into_words() {
        let even = moments(&[10, 10, 10], true).density().unwrap();
        assert!(
            even.starts_with("every 10 min,") && even.ends_with("more than 200 times"),
            "{even}"
        );
        assert_eq!(moments(&[10, 10, 10], false).density(), None);
        assert_eq!(moments(&[10, 10, 20], true).density(), None);
    }

    #[test]
    fn days_after_the_last_computed_moment_say_so() {
        let moments = moments(&[60, 60, 120], true);
        let view = View::at(DateTime::UNIX_EPOCH);
        let days = [0, 3, 24, 48].map(|hours| DateTime::UNIX_EPOCH + TimeDelta::hours(hours));
        let of = |n: usize| cell(&view, &moments, &days[n..n + 2]).0;
        assert!(!of(0).contains("more") && of(0).matches("<time").count() == 2, "{}", of(0));
        assert!(of(1).contains("and more") && of(1).matches("<time").count() == 1, "{}", of(1));
        assert!(of(2).contains("not listed"), "{}", of(2));
    }
}
