//! Busy models: their provider refuses calls for now, and all workers wait before the next one.
//!
//! The wait is a row, so that all workers share it and any of them can go on. A refusal creates the row, and the next answer deletes it.
//!
//! Races:
//! - Many calls are refused at the same moment. Only a call that began after the last refusal makes the wait longer.
//! - Many turns find that the wait is over. One of them extends it and calls the provider; the others wait again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sqlx::PgExecutor;

use super::StatementError;
use crate::settings::Checks;

/// The section `[providers]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seconds of the first wait. Each further wait is about twice as long.
    pub busy_first_secs: u32,
    /// Maximum seconds of one wait.
    pub busy_max_wait_secs: u32,
    /// Seconds that one task waits in all before it fails. 0: no limit.
    pub busy_max_secs: u32,
}

/// A model that is busy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BusyModel {
    pub provider: String,
    pub model: String,
    /// The first refusal since the last answer.
    pub since: DateTime<Utc>,
    /// End of the wait: the next call is allowed then.
    pub until: DateTime<Utc>,
    /// Waits in a row.
    pub refusals: i32,
    /// The provider's last error.
    pub why: String,
}

/// A call that was refused.
#[derive(Debug, Clone, Copy)]
pub struct RefusedCall<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub called_at: DateTime<Utc>,
    /// Minimum wait that the provider asks for.
    pub at_least: Duration,
    pub why: &'a str,
}

/// Age after which a wait is ignored. The SQL of this module repeats the value.
pub const FORGOTTEN_AFTER: TimeDelta = TimeDelta::hours(1);

impl Config {
    pub fn first_wait(&self) -> Duration {
        Duration::from_secs(self.busy_first_secs.into())
    }

    /// Returns the next wait of a task that waits by itself, and not with all others of its model: as long as it has waited so far, within
    /// the limits of a wait, and shortened at random by up to a half.
    pub fn own_wait(&self, since: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
        let waited = (now - since).to_std().unwrap_or_default();
        let longest = Duration::from_secs(self.busy_max_wait_secs.into());
        waited.min(longest).max(self.first_wait()).mul_f64(rand::random_range(0.5..=1.0))
    }

    /// Returns when a task that has waited since `since` fails. `None`: never.
    pub fn deadline(&self, since: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let most = TimeDelta::seconds(self.busy_max_secs.into());
        (!most.is_zero()).then(|| since + most)
    }

    pub fn is_over(&self, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        self.deadline(since).is_some_and(|deadline| deadline <= now)
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("providers.busy_first_secs", self.busy_first_secs.into(), 1);
        let first = u64::from(self.busy_first_secs);
        checks.at_least("providers.busy_max_wait_secs", self.busy_max_wait_secs.into(), first);
    }
}

impl BusyModel {
    /// Formats since when, how often, until when and why the model is busy.
    pub fn describe(&self) -> String {
        let Self { provider, model, since, until, refusals, why } = self;
        format!(
            "{provider} has refused calls of {model} since {} ({refusals} in a row) and is called again at {}: {why}",
            format_moment(*since),
            format_moment(*until),
        )
    }

    pub fn wait(&self, now: DateTime<Utc>) -> Duration {
        (self.until - now).to_std().unwrap_or_default()
    }
}

pub fn format_moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Lists the busy models, without those whose wait ended more than [`FORGOTTEN_AFTER`] ago.
pub async fn list(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<BusyModel>, StatementError> {
    sqlx::query_as!(
        BusyModel,
        "select provider, model, since, until, refusals, why from dalsegno.busy_models
          where until > $1::timestamptz - interval '1 hour' order by since, provider, model",
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list busy models"))
}

pub async fn find(
    executor: impl PgExecutor<'_>,
    provider: &str,
    model: &str,
) -> Result<Option<BusyModel>, StatementError> {
    sqlx::query_as!(
        BusyModel,
        "select provider, model, since, until, refusals, why from dalsegno.busy_models where provider = $1 and model = $2",
        provider,
        model,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("check whether a model is busy"))
}

/// Records a refusal, after which all workers wait: twice as long as before, shortened at random by up to a half.
pub async fn record_refusal(
    executor: impl PgExecutor<'_>,
    config: &Config,
    call: RefusedCall<'_>,
    now: DateTime<Utc>,
) -> Result<BusyModel, StatementError> {
    sqlx::query_file_as!(
        BusyModel,
        "src/domain/busy_models/refused.sql",
        call.provider,
        call.model,
        now,
        call.called_at,
        call.at_least.as_secs_f64(),
        f64::from(config.busy_first_secs),
        f64::from(config.busy_max_wait_secs),
        call.why,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("record that a model is busy"))
}

/// Returns true for the one caller that may try after the end of the wait, and extends the wait of all others. False: another caller tries,
/// or the wait is not over.
pub async fn claim_retry(
    executor: impl PgExecutor<'_>,
    config: &Config,
    provider: &str,
    model: &str,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    let moved = sqlx::query!(
        "update dalsegno.busy_models set until = $3::timestamptz + make_interval(secs => $4)
          where provider = $1 and model = $2 and until <= $3",
        provider,
        model,
        now,
        f64::from(config.busy_first_secs),
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("claim the next call of a busy model"))?;
    Ok(moved.rows_affected() == 1)
}

/// Ends the wait, because the model has answered a call. A refusal that came after this call began stays.
pub async fn record_answer(
    executor: impl PgExecutor<'_>,
    provider: &str,
    model: &str,
    called_at: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.busy_models where provider = $1 and model = $2 and refused_at <= $3",
        provider,
        model,
        called_at,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record that a model answers again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_of_a_single_task_grow_within_their_limits() {
        let config = Config { busy_first_secs: 5, busy_max_wait_secs: 300, busy_max_secs: 0 };
        let since = DateTime::UNIX_EPOCH;
        let (mut now, mut waits) = (since, Vec::new());
        for _ in 0..40 {
            let wait = config.own_wait(since, now);
            now += TimeDelta::from_std(wait).unwrap();
            waits.push(wait.as_secs_f64());
        }
        assert!((2.5..=5.0).contains(&waits[0]), "{waits:?}");
        assert!(waits[20..].iter().all(|wait| (150.0..=300.0).contains(wait)), "{waits:?}");
        // A clock that was set back.
        assert!(config.own_wait(now, since) <= config.first_wait());
    }
}
