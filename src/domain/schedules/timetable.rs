//! Moments of a cron expression in a time zone. Pure: the result depends on the two given moments alone, so all processes get the same
//! moments at any time.
//!
//! Where clocks go forward, a fixed time inside the gap happens at its end. A repeated one (`0 */5 * * * *`) is left out. Where clocks go
//! back, a fixed time happens once, at the first of its two moments. A repeated one happens at both. croner has the same rules, but its
//! iterator is out of order within the hour that comes twice. croner therefore reads the fields without a time zone, and this module
//! places the wall clock.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;
use croner::{
    Cron, JobType,
    parser::{CronParser, Seconds},
};

/// The largest clock change of any zone, except for days left out of the calendar.
const MAX_MOVE: TimeDelta = TimeDelta::hours(3);
/// The length of a stretch that is searched at once.
const STRETCH: TimeDelta = TimeDelta::hours(24);
/// Step of the search for the end of a gap: zones move by whole minutes.
const GAP_STEP: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Clone)]
pub struct Timetable {
    cron: Cron,
    zone: Tz,
    is_fixed: bool,
}

/// The reason why a timetable is invalid. `dalsegno config check` prints it, too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error(
        "invalid cron expression `{cron}` ({why}): use six fields, for example `0 0 2 * * *` for two o'clock each night"
    )]
    Cron { cron: String, why: String },
    #[error(
        "unknown time zone `{0}`: use a name of the IANA list, for example UTC or Europe/Berlin"
    )]
    Zone(String),
}

impl Timetable {
    pub fn parse(cron: &str, zone: &str) -> Result<Self, Invalid> {
        let (cron, zone) = (parse_cron(cron)?, parse_zone(zone)?);
        let is_fixed = matches!(cron.determine_job_type(), JobType::FixedTime);
        Ok(Self { cron, zone, is_fixed })
    }

    /// Lists all reasons why a timetable is invalid.
    pub fn problems(cron: &str, zone: &str) -> impl Iterator<Item = Invalid> {
        [parse_cron(cron).err(), parse_zone(zone).err()].into_iter().flatten()
    }

    /// Returns the first moment after `at`, if there is one.
    pub fn next_after(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let begin = self.wall_clock(at) - MAX_MOVE;
        let some = self.wall_clocks(begin).flat_map(|wall| self.place(wall)).find(|m| *m > at)?;
        // Within an hour that comes twice, a later time of the wall clock can be the earlier moment.
        self.between(at, some, 1).into_iter().next()
    }

    /// Returns the moments after `after` and not after `up_to`, in order, at most `limit`.
    pub fn between(
        &self,
        after: DateTime<Utc>,
        up_to: DateTime<Utc>,
        limit: usize,
    ) -> Vec<DateTime<Utc>> {
        let (mut found, mut from) = (Vec::new(), after);
        while from < up_to && found.len() < limit {
            let to = up_to.min(from + STRETCH);
            found.extend(self.stretch(from, to, limit - found.len()));
            from = to;
        }
        found
    }

    fn stretch(
        &self,
        after: DateTime<Utc>,
        up_to: DateTime<Utc>,
        limit: usize,
    ) -> Vec<DateTime<Utc>> {
        // Without a clock change nearby, moments outside the stretch cannot move into it.
        let offset = |at: DateTime<Utc>| self.wall_clock(at).signed_duration_since(at.naive_utc());
        let moves = offset(after - MAX_MOVE) != offset(up_to + MAX_MOVE);
        let around = if moves { MAX_MOVE } else { TimeDelta::zero() };
        let (begin, end) = (self.wall_clock(after) - around, self.wall_clock(up_to) + around);
        let mut moments: Vec<_> = self
            .wall_clocks(begin)
            .take_while(|wall| *wall <= end)
            .flat_map(|wall| self.place(wall))
            .filter(|moment| after < *moment && *moment <= up_to)
            // Only near a clock change are the moments out of order.
            .take(if moves { usize::MAX } else { limit })
            .collect();
        moments.sort_unstable();
        moments.dedup();
        moments.truncate(limit);
        moments
    }

    fn wall_clock(&self, at: DateTime<Utc>) -> NaiveDateTime {
        at.with_timezone(&self.zone).naive_local()
    }

    /// Returns the wall-clock times of the timetable from `begin` on, across clock changes.
    fn wall_clocks(&self, begin: NaiveDateTime) -> impl Iterator<Item = NaiveDateTime> {
        // croner keeps fractions of a second, which moments do not have: two processes would find two moments for one.
        let begin = begin.with_nanosecond(0).unwrap_or(begin);
        // croner's iterator skips the second after each one that it returned.
        let first = self.cron.find_next_occurrence(&begin.and_utc(), true).ok();
        let next = |at: &DateTime<Utc>| self.cron.find_next_occurrence(at, false).ok();
        std::iter::successors(first, next).map(|at| at.naive_utc())
    }

    /// Returns the moments at which the wall clock shows this time: one, two or none.
    fn place(&self, wall: NaiveDateTime) -> Vec<DateTime<Utc>> {
        let moments = match self.zone.from_local_datetime(&wall) {
            LocalResult::Single(moment) => vec![moment],
            LocalResult::Ambiguous(first, _) if self.is_fixed => vec![first],
            LocalResult::Ambiguous(first, second) => vec![first, second],
            LocalResult::None if self.is_fixed => self.after_gap(wall).into_iter().collect(),
            LocalResult::None => Vec::new(),
        };
        moments.into_iter().map(|moment| moment.to_utc()).collect()
    }

    fn after_gap(&self, wall: NaiveDateTime) -> Option<DateTime<Tz>> {
        let begin = chrono::DurationRound::duration_trunc(wall, GAP_STEP).ok()?;
        let steps = std::iter::successors(Some(begin), |at| Some(*at + GAP_STEP));
        // A zone may leave out a day of the calendar.
        steps
            .take_while(|at| *at <= begin + TimeDelta::hours(25))
            .find_map(|at| self.zone.from_local_datetime(&at).earliest())
    }
}

fn parse_cron(cron: &str) -> Result<Cron, Invalid> {
    let parser = CronParser::builder().seconds(Seconds::Required).build();
    parser
        .parse(cron)
        .map_err(|error| Invalid::Cron { cron: cron.to_owned(), why: error.to_string() })
}

fn parse_zone(zone: &str) -> Result<Tz, Invalid> {
    zone.parse().map_err(|_| Invalid::Zone(zone.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn berlin(cron: &str) -> Timetable {
        Timetable::parse(cron, "Europe/Berlin").unwrap()
    }

    fn times(timetable: &Timetable, after: &str, up_to: &str) -> Vec<String> {
        let found = timetable.between(at(after), at(up_to), 1_000);
        found.iter().map(|at| at.format("%dT%H:%M").to_string()).collect()
    }

    #[test]
    fn a_nightly_schedule_fires_once_a_day() {
        let nightly = Timetable::parse("0 0 2 * * *", "UTC").unwrap();
        let found = times(&nightly, "2026-11-20T02:00:00Z", "2026-11-22T02:00:00Z");
        assert_eq!(found, ["21T02:00", "22T02:00"]);
        assert_eq!(
            nightly.next_after(at("2026-11-20T02:00:00Z")),
            Some(at("2026-11-21T02:00:00Z"))
        );
    }

    /// On 2027-03-28 the clocks in Berlin go from 02:00 to 03:00, which is 01:00 UTC.
    #[test]
    fn at_a_skipped_hour_a_fixed_time_fires_after_the_gap() {
        let found = times(&berlin("0 30 2 * * *"), "2027-03-27T00:00:00Z", "2027-03-30T00:00:00Z");
        assert_eq!(found, ["27T01:30", "28T01:00", "29T00:30"]);
        let often =
            times(&berlin("0 */30 * * * *"), "2027-03-28T00:00:00Z", "2027-03-28T02:00:00Z");
        assert_eq!(often, ["28T00:30", "28T01:00", "28T01:30", "28T02:00"]);
    }

    /// On 2026-10-25 the clocks in Berlin go from 03:00 back to 02:00, which is 01:00 UTC.
    #[test]
    fn at_a_repeated_hour_a_fixed_time_fires_once() {
        let found = times(&berlin("0 30 2 * * *"), "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z");
        assert_eq!(found, ["24T00:30", "25T00:30", "26T01:30"]);
        let often =
            times(&berlin("0 */30 * * * *"), "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(often, ["25T00:30", "25T01:00", "25T01:30", "25T02:00"]);
    }

    /// Checks that reading a stretch in parts gives the same moments as reading it as a whole.
    #[test]
    fn the_moments_do_not_depend_on_when_the_scan_began() {
        for cron in ["0 30 2 * * *", "0 */7 * * * *", "0 0 3 * * SUN", "30 59 1,2,3 * * *"] {
            for (from, to) in [
                ("2027-03-27T20:00:00Z", "2027-03-28T08:00:00Z"),
                ("2026-10-24T20:00:00Z", "2026-10-25T08:00:00Z"),
            ] {
                let timetable = berlin(cron);
                let whole = timetable.between(at(from), at(to), 10_000);
                let (mut parts, mut after) = (Vec::new(), at(from));
                while after < at(to) {
                    // Checks do not happen at whole seconds.
                    let up_to = at(to).min(after + TimeDelta::milliseconds(431_377));
                    parts.extend(timetable.between(after, up_to, 10_000));
                    after = up_to;
                }
                assert_eq!(parts, whole, "{cron} from {from}");
                let oddly = at(from) + TimeDelta::nanoseconds(123_456_789);
                assert_eq!(timetable.next_after(oddly), whole.first().copied(), "{cron}");
                let nexts = std::iter::successors(timetable.next_after(at(from)), |last| {
                    timetable.next_after(*last)
                });
                let nexts: Vec<_> = nexts.take_while(|next| *next <= at(to)).collect();
                assert_eq!(nexts, whole, "{cron}: scanned one by one from {from}");
                assert!(!whole.is_empty());
            }
        }
    }

    #[test]
    fn consecutive_seconds_are_all_listed() {
        for cron in ["* * * * * *", "0-59 * * * * *"] {
            let timetable = Timetable::parse(cron, "UTC").unwrap();
            let (from, to) = (at("2026-11-20T12:00:00Z"), at("2026-11-20T12:00:10Z"));
            let seconds: Vec<_> = (1..=10).map(|secs| from + TimeDelta::seconds(secs)).collect();
            assert_eq!(timetable.between(from, to, 100), seconds, "{cron}");
            assert_eq!(timetable.between(from, to, 3), seconds[..3], "{cron}");
            assert_eq!(timetable.next_after(from), Some(seconds[0]), "{cron}");
        }
    }

    #[test]
    fn an_invalid_timetable_is_refused_with_an_example() {
        for (cron, zone, word) in [
            ("0 2 * * *", "UTC", "six fields"),
            ("0 0 25 * * *", "UTC", "six fields"),
            ("0 0 2 * * *", "Europe/Atlantis", "IANA"),
        ] {
            let error = Timetable::parse(cron, zone).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_date_that_never_occurs_has_no_moment() {
        let never = Timetable::parse("0 0 0 30 2 *", "UTC").unwrap();
        assert_eq!(never.next_after(at("2026-11-20T00:00:00Z")), None);
    }
}
