//! Metrics of deliveries.

use metrics::{Unit, counter, describe_counter};

use crate::domain::webhooks::{Next, Outcome};

const DELIVERIES: &str = "dalsegno_webhook_deliveries_total";

/// Describes the metric and starts it at 0.
pub(super) fn describe() {
    let words = "Attempts at webhooks of this process by result: delivered, retried, failed (given up), held (webhook disabled).";
    describe_counter!(DELIVERIES, Unit::Count, words);
    for result in ["delivered", "retried", "failed", "held"] {
        counter!(DELIVERIES, "result" => result).increment(0);
    }
}

pub(super) fn count(outcome: &Outcome, next: Next) {
    let result = match (outcome, next) {
        (_, Next::Overtaken) => return,
        (Outcome::Delivered { .. }, _) => "delivered",
        (Outcome::Held, _) => "held",
        (Outcome::Missed(_), Next::Again(_)) => "retried",
        (Outcome::Missed(_), Next::Ended) => "failed",
    };
    counter!(DELIVERIES, "result" => result).increment(1);
}
