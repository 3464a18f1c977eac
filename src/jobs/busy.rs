//! Metrics of providers that refuse calls for now.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use sqlx::PgPool;

use crate::{
    causes::causes,
    clock::Clock,
    domain::{agents::Provider, tasks},
};

const REFUSALS: &str = "dalsegno_provider_refusals_total";
const LONGEST_WAIT: &str = "dalsegno_provider_busy_longest_wait_seconds";

/// Describes the metrics and starts each at 0.
pub fn describe() {
    let words = "Calls that a provider did not take because it is busy or a limit is used up.";
    describe_counter!(REFUSALS, Unit::Count, words);
    let words =
        "How long the task has waited that has waited longest for its provider. 0: none does.";
    describe_gauge!(LONGEST_WAIT, Unit::Seconds, words);
    gauge!(LONGEST_WAIT).set(0.0);
    for provider in Provider::all() {
        counter!(REFUSALS, "provider" => provider.as_str()).increment(0);
    }
}

pub(super) fn count(provider: &str) {
    counter!(REFUSALS, "provider" => provider.to_owned()).increment(1);
}

/// Publishes the longest time that a task has waited for its provider.
pub async fn publish(pool: &PgPool, clock: &dyn Clock) {
    let now = clock.now();
    match tasks::longest_busy_since(pool, now).await {
        Ok(since) => {
            let secs = since.map_or(0, |since| (now - since).num_seconds().max(0));
            gauge!(LONGEST_WAIT).set(secs as f64);
        }
        Err(error) => {
            tracing::debug!(error = causes(&error), "cannot read the longest wait for a provider");
        }
    }
}
