//! Metrics of providers that refuse calls for now.

use metrics::{counter, gauge};
use sqlx::PgPool;

use crate::{
    causes::causes,
    clock::Clock,
    domain::tasks,
    metric::Metric,
    providers::{self, Origin},
    queue::WaitCause,
};

const REFUSALS: Metric = Metric::counter(
    "dalsegno_provider_refusals_total",
    &["provider"],
    "Calls of this process that a provider refused because it is busy or a rate limit is used up.",
);
const LONGEST_WAIT: Metric = Metric::gauge(
    "dalsegno_provider_busy_longest_wait_seconds",
    &[],
    "Longest time in seconds that a task has waited for a busy provider, measured whenever the scheduler checks; 0 if none waits.",
);

/// The metrics of busy providers.
pub const METRICS: [Metric; 2] = [REFUSALS, LONGEST_WAIT];

/// Describes the metrics and starts each at 0, for these providers.
pub fn describe<'a>(providers: impl IntoIterator<Item = &'a str>) {
    METRICS.iter().for_each(Metric::describe);
    gauge!(LONGEST_WAIT.name).set(0.0);
    for provider in providers {
        counter!(REFUSALS.name, "provider" => provider.to_owned()).increment(0);
    }
}

/// Returns the cause of the wait after a call that was refused. A wait for this host, for example for disk space, has none.
pub(super) fn wait_cause(error: &providers::Error) -> Option<WaitCause> {
    match error.origin {
        Origin::Provider | Origin::CostLimit | Origin::LostFiles => Some(WaitCause::Provider),
        Origin::Budget | Origin::RateLimit => Some(WaitCause::Limit),
        Origin::Host => None,
    }
}

pub(super) fn count(provider: &str) {
    counter!(REFUSALS.name, "provider" => provider.to_owned()).increment(1);
}

/// Publishes the longest time that a task has waited for its provider.
pub async fn publish(pool: &PgPool, clock: &dyn Clock) {
    let now = clock.now();
    match tasks::count_busy(pool, now).await {
        Ok(busy) => {
            let secs = busy.since.map_or(0, |since| (now - since).num_seconds().max(0));
            gauge!(LONGEST_WAIT.name).set(secs as f64);
        }
        Err(error) => {
            tracing::debug!(error = causes(&error), "cannot read the longest wait for a provider");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::providers::{Class, Scope};

    #[test]
    fn a_wait_for_a_provider_is_not_one_for_an_own_limit_or_for_this_host() {
        let class = Class::Snooze { after: Duration::ZERO, scope: Scope::Host };
        let cause =
            |origin| wait_cause(&providers::Error::new("test", class, "it waits").of(origin));
        assert_eq!(cause(Origin::Provider), Some(WaitCause::Provider));
        assert_eq!(cause(Origin::Budget), Some(WaitCause::Limit));
        assert_eq!(cause(Origin::RateLimit), Some(WaitCause::Limit));
        assert_eq!(cause(Origin::Host), None);
    }
}
