//! Times, amounts and durations as pages show them.

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::{
    domain::period_edge::begin_of_day,
    http::pages::{PageCaller, TOKEN_FIELD},
    operations::{Operation as _, ShowJob},
};

/// Digits of an amount after the point.
const MIN_DIGITS: usize = 2;
/// A space that is as wide as a digit.
const FIGURE_SPACE: &str = "\u{2007}";

/// The display of times, amounts and forms on a page.
#[derive(Debug, Clone)]
pub(in crate::console) struct View {
    pub(in crate::console) now: DateTime<Utc>,
    zone: Tz,
    currency: String,
    token: String,
    /// The caller may see jobs and lanes, so sentences link to them.
    pub(in crate::console) has_jobs: bool,
}

impl View {
    pub(in crate::console) fn of(caller: &PageCaller) -> Self {
        Self {
            now: caller.now(),
            zone: caller.time_zone().parse().unwrap_or(Tz::UTC),
            currency: caller.currency().to_owned(),
            token: caller.form_token(),
            has_jobs: caller.may_reach(&ShowJob::SPEC),
        }
    }

    #[cfg(test)]
    pub(in crate::console) fn at(now: DateTime<Utc>) -> Self {
        Self {
            now,
            zone: Tz::UTC,
            currency: "EUR".to_owned(),
            token: String::new(),
            has_jobs: true,
        }
    }

    /// The hidden field with which forms prove their origin.
    pub(in crate::console) fn token(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN_FIELD) value=(self.token); }
    }

    /// Shows a moment. A script adds how long ago it was; the exact time is on hover.
    pub(in crate::console) fn time(&self, at: DateTime<Utc>) -> Markup {
        let local = at.with_timezone(&self.zone);
        let is_today = local.date_naive() == self.now.with_timezone(&self.zone).date_naive();
        let words = local.format(if is_today { "%H:%M" } else { "%-d %b %H:%M" }).to_string();
        html! { time datetime=(at.to_rfc3339()) title=(self.exact(at)) data-relative { (words) } }
    }

    /// Shows a moment to the second, for tables of what happened.
    pub(in crate::console) fn clock(&self, at: DateTime<Utc>) -> Markup {
        let local = at.with_timezone(&self.zone);
        let days = (self.day_of(at) - self.day_of(self.now)).num_days();
        let words = local.format(match days {
            0 => "%H:%M:%S",
            -300..=300 => "%-d %b %H:%M:%S",
            _ => "%-d %b %Y %H:%M:%S",
        });
        html! { time datetime=(at.to_rfc3339()) title=(self.exact(at)) { (words) } }
    }

    /// Shows a moment by day and clock, where the question is when: `today 02:00`, `27 Nov 14:05`. No script changes it.
    pub(in crate::console) fn calendar(&self, at: DateTime<Utc>) -> Markup {
        let local = at.with_timezone(&self.zone);
        let days = (self.day_of(at) - self.day_of(self.now)).num_days();
        let day = match days {
            0 => "today".to_owned(),
            1 => "tomorrow".to_owned(),
            -1 => "yesterday".to_owned(),
            -300..=300 => local.format("%-d %b").to_string(),
            _ => local.format("%-d %b %Y").to_string(),
        };
        html! { time datetime=(at.to_rfc3339()) title=(self.exact(at)) { (day) " " (local.format("%H:%M")) } }
    }

    /// Shows a moment to the minute, for axes.
    pub(in crate::console) fn minute(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).format("%H:%M").to_string()
    }

    /// The name of the time zone of the pages.
    pub(in crate::console) fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// Reads a moment of a form, `2026-11-27T09:00`, in the time zone of the pages, or an exact one of [`Self::form_moment`].
    pub(in crate::console) fn moment(&self, text: &str) -> Option<DateTime<Utc>> {
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Some(at.to_utc());
        }
        let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").ok()?;
        local.and_local_timezone(self.zone).earliest().map(|at| at.to_utc())
    }

    /// Formats a moment for a form, as [`Self::moment`] reads it, without its seconds. Where clocks repeat an hour, the second pass has its
    /// offset.
    pub(in crate::console) fn form_moment(&self, at: DateTime<Utc>) -> String {
        let local = at.with_timezone(&self.zone);
        let text = local.format("%Y-%m-%dT%H:%M").to_string();
        match self.moment(&text) {
            Some(read) if at - read < TimeDelta::minutes(1) => text,
            _ => local.format("%Y-%m-%dT%H:%M:00%:z").to_string(),
        }
    }

    pub(in crate::console) fn date(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).format("%-d %B %Y").to_string()
    }

    /// Returns the day of a moment.
    pub(in crate::console) fn day_of(&self, at: DateTime<Utc>) -> NaiveDate {
        at.with_timezone(&self.zone).date_naive()
    }

    /// Returns the beginning of a day.
    pub(in crate::console) fn begin_of(&self, day: NaiveDate) -> DateTime<Utc> {
        begin_of_day(day, self.zone)
    }

    /// Returns the beginning of today.
    pub(in crate::console) fn midnight(&self) -> DateTime<Utc> {
        self.begin_of(self.day_of(self.now))
    }

    /// Returns the beginnings of the next days, from today on, and the end of the last one.
    pub(in crate::console) fn days(&self, n: u32) -> Vec<DateTime<Utc>> {
        let dates = self.day_of(self.now).iter_days().take(n as usize + 1);
        dates.map(|day| self.begin_of(day)).collect()
    }

    /// Shows a day: `Fri 27`.
    pub(in crate::console) fn weekday(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).format("%a %-d").to_string()
    }

    pub(in crate::console) fn today(&self) -> String {
        self.now.with_timezone(&self.zone).format("%A %-d %B %Y, %H:%M").to_string()
    }

    pub(in crate::console) fn money(&self, micros: i64) -> String {
        format_money(&self.currency, micros, digits_of(micros))
    }

    /// Formats the amounts of a column as everywhere else, with spaces as wide as the digits that others have more, so that their points stand
    /// below each other.
    pub(in crate::console) fn column(
        &self,
        micros: impl IntoIterator<Item = i64>,
    ) -> impl Fn(i64) -> String {
        let digits = micros.into_iter().map(digits_of).max().unwrap_or(MIN_DIGITS);
        move |micros| {
            let own = digits_of(micros);
            let amount = format_money(&self.currency, micros, own);
            format!("{amount}{}", FIGURE_SPACE.repeat(digits.saturating_sub(own)))
        }
    }

    /// Returns the label of amounts.
    pub(in crate::console) fn currency(&self) -> &str {
        &self.currency
    }

    fn exact(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).format("%a %-d %b %Y, %H:%M:%S %Z").to_string()
    }
}

/// Returns the number of digits that an amount needs: €12.40, €0.053, €0.0004, €0.000020. It depends on the amount alone, so that an amount
/// has the same digits on all pages.
fn digits_of(micros: i64) -> usize {
    match micros.abs() {
        0 | 1_000_000.. => MIN_DIGITS,
        10_000.. => 3,
        100.. => 4,
        _ => 6,
    }
}

fn format_money(currency: &str, micros: i64, digits: usize) -> String {
    let sign = match currency {
        "EUR" => "€",
        "USD" => "$",
        "GBP" => "£",
        other => &format!("{other} "),
    };
    let minus = if micros < 0 { "−" } else { "" };
    // A display of money needs no more precision than this.
    let amount = micros.unsigned_abs() as f64 / 1e6;
    format!("{minus}{sign}{amount:.digits$}")
}

/// Formats a number of tokens: 812, 41.8k, 1.2M.
pub(in crate::console) fn tokens(n: i64) -> String {
    match n.abs() {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// Formats a duration in its two largest units: 41 s, 1 min 8 s, 2 h 16 min, 3 d 4 h.
pub(in crate::console) fn duration(of: TimeDelta) -> String {
    let ms = of.num_milliseconds().max(0);
    let secs = ms / 1000;
    match secs {
        0 if ms > 0 => format!("{ms} ms"),
        0..10 => format!("{:.1} s", ms as f64 / 1e3),
        10..60 => format!("{secs} s"),
        60..3_600 => format!("{} min {} s", secs / 60, secs % 60),
        3_600..86_400 => format!("{} h {} min", secs / 3_600, secs / 60 % 60),
        _ => format!("{} d {} h", secs / 86_400, secs / 3_600 % 24),
    }
}

#[cfg(test)]
impl View {
    /// A page of a summer day in Berlin.
    pub(in crate::console) fn example() -> Self {
        Self {
            now: DateTime::from_timestamp(1_784_100_000, 0).unwrap_or_default(),
            zone: Tz::Europe__Berlin,
            currency: "EUR".to_owned(),
            token: String::new(),
            has_jobs: true,
        }
    }
}

/// Returns the type of the field of a time. In one for local times, a browser shows nothing else, also no exact time.
pub(in crate::console) fn time_field(text: &str) -> &'static str {
    let is_local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").is_ok();
    if text.is_empty() || is_local { "datetime-local" } else { "text" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_digits_that_they_need() {
        let view = View::at(DateTime::UNIX_EPOCH);
        let money = |micros| view.money(micros);
        assert_eq!(money(12_400_000), "€12.40");
        assert_eq!(money(53_000), "€0.053");
        assert_eq!(money(400), "€0.0004");
        assert_eq!(money(0), "€0.00");
        assert_eq!(money(-1_000_000), "−€1.00");
        assert_eq!(format_money("CHF", 1_000_000, MIN_DIGITS), "CHF 1.00");
        assert_eq!([tokens(812), tokens(41_800), tokens(1_200_000)], ["812", "41.8k", "1.2M"]);
    }

    #[test]
    fn an_amount_has_the_same_digits_in_a_column_and_points_stand_below_each_other() {
        let view = View::at(DateTime::UNIX_EPOCH);
        let all = [12_400_000, 53_000, 0, 20];
        let column = all.map(view.column(all));
        assert_eq!(
            column,
            [
                "€12.40\u{2007}\u{2007}\u{2007}\u{2007}",
                "€0.053\u{2007}\u{2007}\u{2007}",
                "€0.00\u{2007}\u{2007}\u{2007}\u{2007}",
                "€0.000020"
            ]
        );
        assert_eq!(column.map(|it| it.trim_end().to_owned()), all.map(|it| view.money(it)));
        assert_eq!(view.column([])(1_000_000), "€1.00");
    }

    #[test]
    fn a_moment_of_a_repeated_hour_is_read_as_it_was_formatted() {
        let view = View::example();
        for (at, text) in [
            ("2026-10-25T00:30:00Z", "2026-10-25T02:30"),
            ("2026-10-25T01:30:00Z", "2026-10-25T02:30:00+01:00"),
            ("2026-10-25T02:30:00Z", "2026-10-25T03:30"),
        ] {
            let at: DateTime<Utc> = at.parse().unwrap();
            assert_eq!(view.form_moment(at + TimeDelta::seconds(40)), text);
            assert_eq!(view.moment(text), Some(at));
        }
    }

    #[test]
    fn a_field_for_local_times_has_no_other_text() {
        for text in ["", "2026-11-27T09:00"] {
            assert_eq!(time_field(text), "datetime-local", "{text}");
        }
        for text in ["2026-10-25T02:30:00+01:00", "2026-11-27T09:00:30", "yesterday"] {
            assert_eq!(time_field(text), "text", "{text}");
        }
    }

    #[test]
    fn a_moment_is_named_by_its_day_and_clock() {
        let view = View::at(DateTime::from_timestamp(1_784_100_000, 0).unwrap());
        let shown = |hours| view.calendar(view.now + TimeDelta::hours(hours)).0;
        assert!(shown(0).contains(">today 07:20<"), "{}", shown(0));
        assert!(shown(-8).contains(">yesterday 23:20<"), "{}", shown(-8));
        assert!(shown(24).contains(">tomorrow 07:20<"), "{}", shown(24));
        assert!(shown(-48).contains(">13 Jul 07:20<"), "{}", shown(-48));
        assert!(shown(9_000).contains(" 2027 "), "{}", shown(9_000));
        let clock = |hours| view.clock(view.now + TimeDelta::hours(hours)).0;
        assert!(clock(48).contains(">17 Jul 07:20:00<"), "{}", clock(48));
        assert!(clock(9_000).contains(" 2027 "), "{}", clock(9_000));
    }

    #[test]
    fn durations_have_two_units() {
        let of = |secs| duration(TimeDelta::seconds(secs));
        assert_eq!(
            [of(41), of(68), of(8_160), of(273_600)],
            ["41 s", "1 min 8 s", "2 h 16 min", "3 d 4 h"]
        );
        assert_eq!(duration(TimeDelta::milliseconds(1_500)), "1.5 s");
        assert_eq!(duration(TimeDelta::milliseconds(-5)), "0.0 s");
    }
}
