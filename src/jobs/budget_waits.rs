//! The metric of tasks that wait for budgets.

use metrics::gauge;
use sqlx::PgPool;

use crate::{causes::causes, domain::budgets, metric::Metric};

const WAITING: Metric = Metric::gauge(
    "dalsegno_tasks_waiting_for_budget",
    &["owner"],
    "Tasks that wait for space in a budget, measured whenever the scheduler checks.",
);
const OWNERS: [&str; 5] = ["campaign", "task", "agent", "user", "day"];

/// The metrics of waits for budgets.
pub const METRICS: [Metric; 1] = [WAITING];

/// Publishes the number of waiting tasks by the kind of the budget's owner.
pub async fn publish(pool: &PgPool) {
    WAITING.describe();
    match budgets::count_waiting(pool).await {
        Ok(counts) => {
            for owner in OWNERS {
                let n = counts.iter().find(|(counted, _)| counted == owner).map_or(0, |(_, n)| *n);
                gauge!(WAITING.name, "owner" => owner).set(n as f64);
            }
        }
        Err(error) => {
            tracing::debug!(error = causes(&error), "cannot count the tasks that wait for budgets");
        }
    }
}
