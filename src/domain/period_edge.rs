//! The begin or the end of a period, in the notation of people and programs.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::timestamp;

/// A moment, or the begin of a day in the time zone of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodEdge {
    At(DateTime<Utc>),
    Day(NaiveDate),
    Today,
    Yesterday,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "invalid time: use for example `2026-11-23T08:00:00Z`, `2026-11-23` for the begin of that day, `today` or `yesterday`"
    )]
    Unreadable,
    #[error(transparent)]
    Moment(timestamp::Error),
}

impl PeriodEdge {
    /// Returns the moment, for days in a time zone.
    pub fn at(self, zone: Tz, now: DateTime<Utc>) -> DateTime<Utc> {
        let today = now.with_timezone(&zone).date_naive();
        match self {
            Self::At(at) => at,
            Self::Day(day) => begin_of_day(day, zone),
            Self::Today => begin_of_day(today, zone),
            Self::Yesterday => begin_of_day(today - Days::new(1), zone),
        }
    }
}

/// Returns the first moment of a day.
pub fn begin_of_day(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    let local = |at: chrono::NaiveDateTime| at.and_local_timezone(zone).earliest();
    // Clocks that change at midnight skip up to an hour.
    let begin = local(midnight).or_else(|| local(midnight + TimeDelta::hours(1)));
    begin.map_or_else(|| midnight.and_utc(), |at| at.to_utc())
}

impl FromStr for PeriodEdge {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "today" => return Ok(Self::Today),
            "yesterday" => return Ok(Self::Yesterday),
            _ => {}
        }
        if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return Ok(Self::Day(day));
        }
        match timestamp::parse(text) {
            Ok(at) => Ok(Self::At(at)),
            Err(timestamp::Error::Unreadable) => Err(Error::Unreadable),
            Err(error) => Err(Error::Moment(error)),
        }
    }
}

impl fmt::Display for PeriodEdge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => formatter.write_str(&at.to_rfc3339()),
            Self::Day(day) => write!(formatter, "{day}"),
            Self::Today => formatter.write_str("today"),
            Self::Yesterday => formatter.write_str("yesterday"),
        }
    }
}

impl From<DateTime<Utc>> for PeriodEdge {
    fn from(at: DateTime<Utc>) -> Self {
        Self::At(at)
    }
}

impl Serialize for PeriodEdge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(at) => at.serialize(serializer),
            day => serializer.collect_str(day),
        }
    }
}

impl<'de> Deserialize<'de> for PeriodEdge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::{America::Sao_Paulo, Europe::Berlin, UTC};

    use super::*;

    #[test]
    fn days_begin_at_midnight_of_the_time_zone() {
        let now = timestamp::parse("2026-11-29T23:30:00Z").unwrap();
        let at = |text: &str, zone| text.parse::<PeriodEdge>().unwrap().at(zone, now).to_rfc3339();
        assert_eq!(at("today", UTC), "2026-11-29T00:00:00+00:00");
        assert_eq!(at("today", Berlin), "2026-11-29T23:00:00+00:00", "it is the 30th there");
        assert_eq!(at("yesterday", Berlin), "2026-11-28T23:00:00+00:00");
        assert_eq!(at("2026-07-01", Berlin), "2026-06-30T22:00:00+00:00");
        assert_eq!(at("2026-07-01T08:00:00+02:00", Berlin), "2026-07-01T06:00:00+00:00");
        assert_eq!(at("2018-11-04", Sao_Paulo), "2018-11-04T03:00:00+00:00", "it began at one");
    }

    #[test]
    fn an_edge_is_written_as_it_is_read() {
        for text in ["today", "yesterday", "2026-11-23", "2026-11-23T08:00:00Z"] {
            let edge: PeriodEdge = text.parse().unwrap();
            assert_eq!(serde_json::to_value(edge).unwrap(), text);
        }
        for text in ["tomorrow", "", "2026-13-01", "0000-01-01T00:00:00Z"] {
            assert!(text.parse::<PeriodEdge>().is_err(), "{text}");
        }
    }
}
