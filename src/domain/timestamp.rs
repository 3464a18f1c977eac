//! Timestamps and durations in the notation of people and programs.
//!
//! Years 0001 to 9999 in UTC: the range of RFC 3339, and the one that Postgres reads equally as a parameter and within JSON.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use serde::{Deserialize as _, Deserializer, de::Error as _};

const YEARS: RangeInclusive<i32> = 1..=9999;
const PERIOD_MAX_SECS: i64 = 10 * 366 * 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("invalid time: use for example `2026-11-23T08:00:00Z`")]
    Unreadable,
    #[error("the year must be from 0001 to 9999 in UTC")]
    OutOfRange,
}

pub fn parse(text: &str) -> Result<DateTime<Utc>, Error> {
    let at: DateTime<Utc> = text.parse().map_err(|_| Error::Unreadable)?;
    if YEARS.contains(&at.year()) { Ok(at) } else { Err(Error::OutOfRange) }
}

/// Parses a duration: `90d`, `24h`, `30m`, `45s` or `2w`.
pub fn parse_period(text: &str) -> Result<TimeDelta, String> {
    let wrong =
        || format!("invalid duration `{text}`: use for example `30s`, `15m`, `24h`, `90d` or `2w`");
    let unit_secs = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        _ => return Err(wrong()),
    };
    // Below the range where adding to a time overflows, and longer than useful values.
    let n: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let secs = i64::from(n) * unit_secs;
    match secs <= PERIOD_MAX_SECS {
        true => Ok(TimeDelta::seconds(secs)),
        false => Err(format!("invalid duration `{text}`: use at most ten years")),
    }
}

/// Deserializes a timestamp. For `#[serde(deserialize_with = "timestamp::required")]`.
pub fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Deserializes an optional timestamp. For `#[serde(default, deserialize_with = "timestamp::optional")]`.
pub fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse(&text)).transpose().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_a_four_digit_year_in_utc() {
        for fine in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-20T12:00:00+02:00"] {
            assert!(parse(fine).is_ok(), "{fine}");
        }
        for far in [
            "-4713-01-01T00:00:00Z",
            "-262143-01-01T00:00:00Z",
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-01:00",
            "+10000-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(far), Err(Error::OutOfRange), "{far}");
        }
        for wrong in ["", "today", "2026-11-20", "+300000-01-01T00:00:00Z"] {
            assert_eq!(parse(wrong), Err(Error::Unreadable), "{wrong}");
        }
    }

    #[test]
    fn a_duration_needs_a_unit() {
        assert_eq!(parse_period("90d"), Ok(TimeDelta::days(90)));
        assert_eq!(parse_period("0s"), Ok(TimeDelta::zero()));
        for wrong in ["", "d", "90", "-1d", "1.5h", "90 d", "1ü", "600w", "9999999999s"] {
            assert!(parse_period(wrong).is_err(), "{wrong}");
        }
    }
}
