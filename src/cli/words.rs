//! Texts that commands read (arguments, files, standard input), and texts that they print.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Exit, Failure};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        amount::{self, Limit, OnLimit},
        tasks::{CancelOutcome, Cancellation, DescendantCounts},
        timestamp,
    },
};

pub(super) use crate::domain::timestamp::parse_period;

/// Larger than any accepted text, so that a wrong file is refused before it fills the memory.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Limits for a budget.
#[derive(Debug, Args)]
pub(super) struct BudgetFlags {
    /// Budget in units of the configured currency: 5 or 0.25. Default: no limit.
    #[arg(long, value_name = "MONEY", value_parser = amount::parse_money)]
    budget_money: Option<i64>,
    /// Budget in tokens. Default: no limit.
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    budget_tokens: Option<i64>,
}

/// New limits of a budget.
#[derive(Debug, Default, Args)]
pub(super) struct LimitFlags {
    /// Limit in units of the configured currency: 5 or 0.25.
    #[arg(long, conflicts_with = "no_money", value_parser = amount::parse_money)]
    money: Option<i64>,
    /// Removes the limit in money.
    #[arg(long)]
    no_money: bool,
    /// Limit in tokens.
    #[arg(long, conflicts_with = "no_tokens", value_parser = parse_tokens)]
    tokens: Option<i64>,
    /// Removes the limit in tokens.
    #[arg(long)]
    no_tokens: bool,
    /// Soft limit in money: the event and webhook `budget.warning` at this spending.
    #[arg(long, value_name = "MONEY", conflicts_with = "no_warn_money", value_parser = amount::parse_money)]
    warn_money: Option<i64>,
    /// Removes the soft limit in money.
    #[arg(long)]
    no_warn_money: bool,
    /// Soft limit in tokens.
    #[arg(long, value_name = "TOKENS", conflicts_with = "no_warn_tokens", value_parser = parse_tokens)]
    warn_tokens: Option<i64>,
    /// Removes the soft limit in tokens.
    #[arg(long)]
    no_warn_tokens: bool,
}

impl LimitFlags {
    pub(super) fn soft_micros(&self) -> Option<Option<i64>> {
        self.warn_money.map(Some).or(self.no_warn_money.then_some(None))
    }

    pub(super) fn soft_tokens(&self) -> Option<Option<i64>> {
        self.warn_tokens.map(Some).or(self.no_warn_tokens.then_some(None))
    }

    /// Returns true if no flag is set.
    pub(super) fn are_none(&self) -> bool {
        let limits = [self.micros(), self.tokens(), self.soft_micros(), self.soft_tokens()];
        limits.iter().all(Option::is_none)
    }

    pub(super) fn micros(&self) -> Option<Option<i64>> {
        self.money.map(Some).or(self.no_money.then_some(None))
    }

    pub(super) fn tokens(&self) -> Option<Option<i64>> {
        self.tokens.map(Some).or(self.no_tokens.then_some(None))
    }
}

/// Parses the effect of a limit.
pub(super) fn parse_on_limit(text: &str) -> Result<OnLimit, String> {
    match text {
        "wait" => Ok(OnLimit::Wait),
        "fail" => Ok(OnLimit::Fail),
        _ => Err("use wait or fail".to_owned()),
    }
}

impl BudgetFlags {
    pub(super) fn limit(&self) -> Limit {
        Limit { micros: self.budget_money, tokens: self.budget_tokens }
    }
}

/// Returns the text itself, or that of the file; `-` reads the standard input.
pub(super) fn read_text(
    text: Option<&str>,
    file: Option<&PathBuf>,
) -> Result<Option<String>, Failure> {
    match (text, file) {
        (Some("-"), _) => standard_input().map(Some),
        (Some(text), _) => Ok(Some(text.to_owned())),
        (None, Some(path)) if path.as_os_str() == "-" => standard_input().map(Some),
        (None, Some(path)) => file_text(path).map(Some),
        (None, None) => Ok(None),
    }
}

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%F %T").to_string()
}

pub(super) fn time_or_dash(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "-".to_owned(), time)
}

/// Formats a duration in at most five characters, up to 999 days.
pub(super) fn format_duration(duration: TimeDelta) -> String {
    let (millis, secs) = (duration.num_milliseconds().max(0), duration.num_seconds().max(0));
    let (mins, hours, days) = (secs / 60, secs / 3_600, secs / 86_400);
    match () {
        () if millis < 1_000 => format!("{millis}ms"),
        () if secs < 60 => format!("{secs}.{}s", millis % 1_000 / 100),
        () if mins < 10 => format!("{mins}m{:02}s", secs % 60),
        () if hours < 1 => format!("{mins}m"),
        () if hours < 10 => format!("{hours}h{:02}m", mins % 60),
        () if days < 1 => format!("{hours}h"),
        () if days < 10 => format!("{days}d{:02}h", hours % 24),
        () => format!("{days}d"),
    }
}

/// Parses a number of tokens.
pub(super) fn parse_tokens(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        format!("invalid number of tokens `{text}`: write all digits, for example `300000`")
    })
}

/// Returns the seconds of a duration, which is at most ten years.
pub(super) fn secs(period: TimeDelta) -> u32 {
    u32::try_from(period.num_seconds()).unwrap_or(u32::MAX)
}

/// A time in an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: DateTime<Utc>,
    /// True if it counts from now.
    pub(super) is_relative: bool,
}

/// Parses a time: `2026-11-20T12:00:00Z`, or `1d` for a day ago.
pub(super) fn parse_moment(text: &str) -> Result<Moment, String> {
    match parse_period(text) {
        Ok(period) => Ok(Moment { at: SystemClock.now() - period, is_relative: true }),
        Err(_) => match timestamp::parse(text) {
            Ok(at) => Ok(Moment { at, is_relative: false }),
            Err(timestamp::Error::Unreadable) => Err(format!(
                "invalid time `{text}`: use for example `2026-11-23T08:00:00Z`, or `2h` for two hours ago"
            )),
            Err(error @ timestamp::Error::OutOfRange) => {
                Err(format!("invalid time `{text}`: {error}"))
            }
        },
    }
}

/// Returns lines for tags and metadata, if there are any.
pub(super) fn label_fields(
    tags: &[String],
    metadata: &Map<String, Value>,
) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    if !tags.is_empty() {
        fields.push(("tags", tags.join(", ")));
    }
    if !metadata.is_empty() {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = metadata.iter().map(|(key, value)| format!("{key}={}", text(value)));
        fields.push(("metadata", pairs.collect::<Vec<_>>().join(", ")));
    }
    fields
}

/// Describes the result of cancelling a task.
pub(super) fn format_cancellation(id: Uuid, cancellation: &Cancellation) -> String {
    let Cancellation { cancel, below } = cancellation;
    let own = match cancel {
        CancelOutcome::AtOnce => format!("task {id} is cancelled"),
        CancelOutcome::Requested => format!("task {id} is running; its worker will stop it"),
        CancelOutcome::AtSafePoint => {
            format!("task {id} is running; it ends at the next safe point")
        }
        CancelOutcome::HadEnded => format!("task {id} had ended before"),
    };
    match below.is_none() {
        true => own,
        false => format!("{own}; of its dependent tasks, {}", format_below(*below)),
    }
}

/// Describes how many tasks were cancelled, and how many still run.
pub(super) fn format_below(DescendantCounts { cancelled, stopping }: DescendantCounts) -> String {
    let cancelled_words = match cancelled {
        1 => "1 task is cancelled".to_owned(),
        n => format!("{n} tasks are cancelled"),
    };
    let stopping_words = match stopping {
        1 => "1 running task will be stopped".to_owned(),
        n => format!("{n} running tasks will be stopped"),
    };
    match (cancelled, stopping) {
        (_, 0) => cancelled_words,
        (0, _) => stopping_words,
        _ => format!("{cancelled_words} and {stopping_words}"),
    }
}

/// Returns the first line of a text, for a table or a field.
pub(super) fn first_line(text: &str, max_chars: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.chars().count() > max_chars || text.trim().lines().nth(1).is_some() {
        true => format!("{} ...", line.chars().take(max_chars).collect::<String>().trim_end()),
        false => line.to_owned(),
    }
}

fn standard_input() -> Result<String, Failure> {
    read(std::io::stdin().lock(), "the standard input")
}

fn file_text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| {
        Failure::new(Exit::Usage, anyhow!(error).context(format!("cannot read {name}")))
    })?;
    read(file, &name)
}

fn read(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| {
        let words = format!("cannot read {name} as UTF-8 text");
        Failure::new(Exit::Usage, anyhow!(error).context(words))
    })?;
    if text.len() as u64 > MAX_BYTES {
        let words = format!("{name} is too long: at most {MAX_BYTES} bytes are read");
        return Err(Failure::new(Exit::Usage, anyhow!(words)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_text_shows_that_more_follows() {
        assert_eq!(first_line("one\ntwo", 20), "one ...");
        assert_eq!(first_line("  one  ", 20), "one");
        assert_eq!(first_line("Zwölf Boxkämpfer", 5), "Zwölf ...");
    }

    #[test]
    fn a_cancellation_lists_running_and_cancelled_tasks() {
        let of = |cancel, cancelled, stopping| {
            let below = DescendantCounts { cancelled, stopping };
            let words = format_cancellation(Uuid::nil(), &Cancellation { cancel, below });
            words.replace(&Uuid::nil().to_string(), "T")
        };
        assert_eq!(of(CancelOutcome::AtOnce, 0, 0), "task T is cancelled");
        assert_eq!(
            of(CancelOutcome::HadEnded, 2, 1),
            "task T had ended before; of its dependent tasks, 2 tasks are cancelled and 1 running task will be stopped"
        );
        assert_eq!(
            of(CancelOutcome::HadEnded, 0, 2),
            "task T had ended before; of its dependent tasks, 2 running tasks will be stopped"
        );
        assert_eq!(
            of(CancelOutcome::Requested, 1, 0),
            "task T is running; its worker will stop it; of its dependent tasks, 1 task is cancelled"
        );
    }

    #[test]
    fn a_time_is_a_timestamp_or_a_duration_ago() {
        assert_eq!(
            parse_moment("2026-11-20T12:00:00Z").unwrap().at.to_rfc3339(),
            "2026-11-20T12:00:00+00:00"
        );
        let before = SystemClock.now();
        let a_day_later = parse_moment("1d").unwrap().at + TimeDelta::days(1);
        assert!((before..=SystemClock.now()).contains(&a_day_later));
        assert!(parse_moment("yesterday").unwrap_err().contains("invalid time"));
    }

    #[test]
    fn a_duration_has_five_characters_at_most() {
        let took = |millis| format_duration(TimeDelta::milliseconds(millis));
        assert_eq!([7, 12_340, 65_000].map(took), ["7ms", "12.3s", "1m05s"]);
        assert_eq!([754_000, 7_500_000, 273_600_000].map(took), ["12m", "2h05m", "3d04h"]);
    }

    #[test]
    fn tokens_are_written_with_all_digits() {
        assert_eq!(parse_tokens("300000"), Ok(300_000));
        for wrong in ["300k", "1M", "1_000", "1e6", ""] {
            assert!(parse_tokens(wrong).unwrap_err().contains("`300000`"), "{wrong}");
        }
    }

    #[test]
    fn input_that_is_not_text_is_refused() {
        assert!(read(&b"\xff\xfe"[..], "x").is_err());
        assert_eq!(read(&b"text\n"[..], "x").ok().as_deref(), Some("text\n"));
    }
}
