//! Turns whose provider refuses calls for now. They wait with a growing backoff, together with all others of the model,
//! up to `providers.busy_max_secs`. A turn whose worker cannot reach the server waits alone, because other workers may reach it.
//!
//! A wait uses no attempt. Its reason names its start, count, end and cause; `job explain` and `task explain` print it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    domain::busy_models::{self, Config, format_moment},
    jobs::{
        Services,
        run_turn::{
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
        },
    },
    queue::Run,
};

/// Refuses a turn while its model is busy. After the wait, it lets one turn at a time try.
pub async fn admit(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<(), Error> {
    let Some(busy) = &assignment.busy else { return Ok(()) };
    let (config, now) = (&services.busy, services.clock.now());
    if busy_models::claim_retry(run.pool(), config, &busy.provider, &busy.model, now).await? {
        return Ok(());
    }
    // Another turn tries the model at this moment.
    let after = if busy.until > now { busy.wait(now) } else { config.first_wait() };
    Err(Error::Refused(BeginRefusal::busy(busy.describe(), after, busy.refusals)))
}

pub fn describe_exceeded_wait(why: &str, since: DateTime<Utc>) -> String {
    let since = format_moment(since);
    format!(
        "the task has waited for its provider since {since}, longer than providers.busy_max_secs allows: {why}"
    )
}

pub fn with_end(config: &Config, why: &str, since: DateTime<Utc>) -> String {
    match config.deadline(since) {
        Some(deadline) => {
            let (since, deadline) = (format_moment(since), format_moment(deadline));
            format!(
                "{why}; the task waits since {since} and fails at {deadline} if the provider stays busy"
            )
        }
        None => why.to_owned(),
    }
}

/// Limits a wait to the deadline, at which the task fails.
pub fn limit_wait(
    config: &Config,
    after: Duration,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Duration {
    let left = config.deadline(since).map(|deadline| deadline - now);
    left.and_then(|left| left.max(TimeDelta::zero()).to_std().ok())
        .map_or(after, |left| left.min(after))
}
