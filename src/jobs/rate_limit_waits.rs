//! The metric of tasks that wait for rate limits.

use metrics::gauge;
use sqlx::PgPool;

use crate::{causes::causes, domain::rate_limits, metric::Metric};

const WAITING: Metric = Metric::gauge(
    "dalsegno_tasks_waiting_for_rate_limit",
    &[],
    "Tasks that wait for a rate limit, measured whenever the scheduler checks.",
);

/// The metrics of waits for rate limits.
pub const METRICS: [Metric; 1] = [WAITING];

/// Publishes the number of waiting tasks.
pub async fn publish(pool: &PgPool) {
    WAITING.describe();
    match rate_limits::count_waiting(pool).await {
        Ok(n) => gauge!(WAITING.name).set(n as f64),
        Err(error) => {
            let error = causes(&error);
            tracing::debug!(error, "cannot count the tasks that wait for rate limits");
        }
    }
}
