//! The begin of a budget's period, which wakes the tasks that wait for it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::{
    domain::StatementError,
    queue::{Job, Policy},
};

/// The job at the end of a period. The database enqueues it, once per period, when the first task waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginBudgetPeriod {
    pub owner: String,
    pub key: String,
}

impl Job for BeginBudgetPeriod {
    const KIND: &'static str = "begin_budget_period";

    fn policy() -> Policy {
        Policy { queue: "turns", ..Policy::default() }
    }
}

/// Returns the end of the period that the row of a budget is in. `None`: it has no period, or does not exist.
pub async fn period_end(
    executor: impl PgExecutor<'_>,
    owner: &str,
    key: &str,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    let end = sqlx::query_scalar!(
        "select (period + 1)::timestamp at time zone time_zone from dalsegno.budgets where owner = $1 and key = $2",
        owner,
        key,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the period of a budget"))?;
    Ok(end.flatten())
}
