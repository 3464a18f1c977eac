//! Timestamps in the notation of people and programs.
//!
//! Years 0001 to 9999 in UTC: the range of RFC 3339, and the one that Postgres reads equally as a parameter and within JSON.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, Utc};
use serde::{Deserialize as _, Deserializer, de::Error as _};

const YEARS: RangeInclusive<i32> = 1..=9999;

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
}
