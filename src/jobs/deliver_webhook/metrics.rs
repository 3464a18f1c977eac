//! Metrics of deliveries.

use metrics::counter;

use crate::{
    domain::webhooks::{Next, Outcome},
    metric::Metric,
};

const ATTEMPTS: Metric = Metric::counter(
    "dalsegno_webhook_attempts_total",
    &["outcome"],
    "Attempts of this process to deliver a message to a webhook: delivered, retried, failed (the delivery is given up), held \
     (the webhook is disabled).",
);

/// All metrics of deliveries.
pub const METRICS: [Metric; 1] = [ATTEMPTS];

/// Describes the metric and starts it at 0.
pub(super) fn describe() {
    ATTEMPTS.describe();
    for outcome in ["delivered", "retried", "failed", "held"] {
        counter!(ATTEMPTS.name, "outcome" => outcome).increment(0);
    }
}

pub(super) fn count(outcome: &Outcome, next: Next) {
    let outcome = match (outcome, next) {
        (_, Next::Overtaken) => return,
        (Outcome::Delivered { .. }, _) => "delivered",
        (Outcome::Held, _) => "held",
        (Outcome::Missed(_), Next::Again(_)) => "retried",
        (Outcome::Missed(_), Next::Ended) => "failed",
    };
    counter!(ATTEMPTS.name, "outcome" => outcome).increment(1);
}
