//! Waits of tasks for rate limits.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Measure, RateLimit, describe_wait};
use crate::domain::StatementError;

/// A task whose call was refused.
#[derive(Debug, Clone, Copy)]
pub struct NewWait<'a> {
    pub task_id: Uuid,
    pub job_id: i64,
    pub campaign_id: Uuid,
    /// All limits of the call, and what it is charged in each of them.
    pub keys: &'a [String],
    pub amounts: &'a [f64],
    /// The limit that refused it.
    pub key: &'a str,
}

/// Grant to a task that was served: the limits of its call, and its charge in each of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Grant {
    pub keys: Vec<String>,
    pub amounts: Vec<f64>,
}

/// The wait of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimitWait {
    pub subject: String,
    pub measure: Measure,
    pub amount: f64,
    /// Tasks that are served before this one, as far as no others come.
    pub n_ahead: i64,
    /// Seconds until the limit has space. `None`: that is unknown.
    pub next_secs: Option<f64>,
    /// True if the task was served, and its turn is about to begin.
    pub is_granted: bool,
}

/// Lets a task wait. The caller puts its job off in the same transaction.
pub async fn wait(
    executor: impl PgExecutor<'_>,
    wait: NewWait<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let NewWait { task_id, job_id, campaign_id, keys, amounts, key } = wait;
    sqlx::query!(
        "select dalsegno.wait_for_rate_limit($1, $2, $3, $4, $5, $6, $7) is null as waits",
        task_id,
        job_id,
        campaign_id,
        keys,
        amounts,
        key,
        now,
    )
    .fetch_one(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("let a task wait for a rate limit"))
}

/// Returns the wait of a task.
pub async fn wait_of(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<RateLimitWait>, StatementError> {
    let row = sqlx::query!(
        r#"select l.subject, l.measure as "measure: Measure", l.amount, w.granted_at is not null as "is_granted!",
                  greatest(0, (1 - l.available) * 60 / l.amount - extract(epoch from now() - l.refilled_at)::float8) as "next_secs!",
                  (select count(*) from dalsegno.rate_limit_waits as a
                    where a.key = w.key and a.granted_at is null
                      and (coalesce(a.place, 9223372036854775807), a.since, a.task_id)
                          < (coalesce(w.place, 9223372036854775807), w.since, w.task_id)) as "n_ahead!"
             from dalsegno.rate_limit_waits as w join dalsegno.rate_limits as l on l.key = w.key
            where w.task_id = $1"#,
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the wait of a task for a rate limit"))?;
    Ok(row.map(|row| RateLimitWait {
        next_secs: (row.measure != Measure::ConcurrentCalls).then_some(row.next_secs),
        subject: row.subject,
        measure: row.measure,
        amount: row.amount,
        n_ahead: row.n_ahead,
        is_granted: row.is_granted,
    }))
}

/// Estimates the seconds until all these limits have space for a further call, behind the tasks that wait. `None`: unknown, because all
/// concurrent calls of one of them run.
pub async fn expected_wait(
    executor: impl PgExecutor<'_>,
    keys: &[String],
    now: DateTime<Utc>,
) -> Result<Option<f64>, StatementError> {
    let row = sqlx::query!(
        r#"select coalesce(bool_or(l.measure = 'concurrent_calls' and l.available - w.ahead < 1), false) as "is_unknown!",
                  coalesce(max((1 + w.ahead - l.available) * 60 / l.amount - extract(epoch from $2::timestamptz - l.refilled_at)::float8)
                             filter (where l.measure <> 'concurrent_calls'), 0) as "secs!"
             from dalsegno.rate_limits as l
            cross join lateral (
                  select coalesce(sum(w.amounts[array_position(w.keys, l.key)]), 0) as ahead
                    from dalsegno.rate_limit_waits as w where w.key = l.key and w.granted_at is null) as w
            where l.key = any ($1)"#,
        keys,
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("estimate the wait for a rate limit"))?;
    Ok((!row.is_unknown).then_some(row.secs.max(0.0)))
}

/// Counts the tasks that wait.
pub async fn count_waiting(executor: impl PgExecutor<'_>) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.rate_limit_waits where granted_at is null"#
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the tasks that wait for rate limits"))
}

impl RateLimitWait {
    /// Formats the reason of the wait, and when it may end.
    pub fn describe(&self) -> String {
        let next = match self.next_secs {
            None => "next slot when a running call ends".to_owned(),
            Some(secs) => format!("next slot in {} s", secs.max(1.0).ceil()),
        };
        format!("{}, {next}", describe_wait(&self.subject, (self.measure, self.amount)))
    }
}

impl Grant {
    /// Returns true if the grant is for a call with these limits. Those that the provider tells may be newer than the grant.
    pub fn is_for(&self, limits: &[RateLimit]) -> bool {
        limits.iter().all(|limit| limit.is_told() || self.keys.contains(&limit.key))
    }

    /// Returns the charge of a limit.
    pub fn amount(&self, key: &str) -> Option<f64> {
        let at = self.keys.iter().position(|own| own == key)?;
        self.amounts.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_when_the_limit_has_space_again() {
        let wait = |measure, next_secs| RateLimitWait {
            subject: "`gpt-5`".to_owned(),
            measure,
            amount: 20_000.0,
            n_ahead: 0,
            next_secs,
            is_granted: false,
        };
        assert_eq!(
            wait(Measure::InputTokens, Some(3.2)).describe(),
            "waiting for `gpt-5`: 20,000 input tokens per minute, next slot in 4 s"
        );
        assert_eq!(
            wait(Measure::ConcurrentCalls, None).describe(),
            "waiting for `gpt-5`: 20,000 concurrent calls, next slot when a running call ends"
        );
    }
}
