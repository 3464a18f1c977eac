//! Cells of tables: short ids and relative times on a terminal, whole ones with `--wide`; texts in one line.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{style::style, table::cut};
use crate::{
    cli::words::{first_line, time},
    clock::{Clock as _, SystemClock},
    domain::{amount::format_money, ids},
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns the last digits of an id, which every command accepts, or the whole id with `--wide`.
pub(in crate::cli) fn short_id(id: Uuid) -> String {
    if style().is_wide() { id.to_string() } else { ids::short(id) }
}

/// Returns a time for a table: relative to now on a terminal, exact in files and with `--wide`.
pub(in crate::cli) fn time_cell(at: DateTime<Utc>) -> String {
    match style().has_relative_times() {
        true => relative(at, SystemClock.now()),
        false => time(at),
    }
}

pub(in crate::cli) fn time_cell_or_dash(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "-".to_owned(), time_cell)
}

/// Returns a time for a table of one span: on a terminal the clock time in UTC, with the day if it is another one than that of `until`.
pub(in crate::cli) fn clock_cell(at: DateTime<Utc>, until: DateTime<Utc>) -> String {
    match style().has_relative_times() && at.date_naive() == until.date_naive() {
        true => at.format("%T").to_string(),
        false => time(at),
    }
}

/// Returns a whole text in one line. The table cuts it where a terminal is too narrow.
pub(in crate::cli) fn text_cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text that no table cuts, or the whole text with `--wide`.
pub(in crate::cli) fn short_text(text: &str, max_columns: usize) -> String {
    if style().is_wide() {
        text_cell(text)
    } else {
        cut(&first_line(text, max_columns), max_columns)
    }
}

/// Returns the format of the amounts of a column: each with the same digits, so that their points stand below each other.
pub(in crate::cli) fn money_column(
    micros: impl IntoIterator<Item = i64>,
) -> impl Fn(i64) -> String {
    let n_decimals = |amount: &str| amount.split_once('.').map_or(0, |(_, digits)| digits.len());
    let amounts: Vec<String> = micros.into_iter().map(format_money).collect();
    let digits = amounts.iter().map(|amount| n_decimals(amount)).max().unwrap_or(0);
    let padded = move |amount: &str| {
        format!("{amount}{}", "0".repeat(digits.saturating_sub(n_decimals(amount))))
    };
    let width = amounts.iter().map(|amount| padded(amount).len()).max().unwrap_or(0);
    move |micros| format!("{:>width$}", padded(&format_money(micros)))
}

/// Describes a time by its distance from now; a distant one by its day.
fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let secs = (now - at).num_seconds();
    let distance = match secs.unsigned_abs() {
        0 => return "now".to_owned(),
        n if n < MINUTE => format!("{n} s"),
        n if n < HOUR => format!("{} min", n / MINUTE),
        n if n < 2 * DAY => format!("{} h", n / HOUR),
        n if n < 30 * DAY => format!("{} days", n / DAY),
        _ => return at.format("%F").to_string(),
    };
    if secs > 0 { format!("{distance} ago") } else { format!("in {distance}") }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn near_times_are_distances_and_distant_ones_are_days() {
        let now = "2026-11-28T12:00:00Z".parse().unwrap();
        let ago = |secs| relative(now - TimeDelta::seconds(secs), now);
        assert_eq!(ago(0), "now");
        assert_eq!(ago(59), "59 s ago");
        assert_eq!(ago(60), "1 min ago");
        assert_eq!(ago(47 * 3600), "47 h ago");
        assert_eq!(ago(48 * 3600), "2 days ago");
        assert_eq!(ago(30 * 86_400), "2026-10-29");
        assert_eq!(ago(-90), "in 1 min");
        assert_eq!(ago(-3600), "in 1 h");
    }

    #[test]
    fn a_text_is_whole_and_in_one_line() {
        assert_eq!(text_cell("  Write.\r\n\n\tThen  read. "), "Write. Then read.");
    }

    #[test]
    fn without_a_terminal_ids_are_short_and_times_are_exact() {
        let id: Uuid = "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b".parse().unwrap();
        assert_eq!(short_id(id), "0c1d2e3f4a5b");
        assert_eq!(time_cell("2026-11-28T12:00:00Z".parse().unwrap()), "2026-11-28 12:00:00");
    }
}
