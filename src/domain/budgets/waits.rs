//! Waits of tasks for space in a budget.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::{
    Amount, StatementError,
    amount::{Refusal, budget_subject},
};

/// The wait of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWait {
    pub owner: String,
    pub key: String,
    pub since: DateTime<Utc>,
    /// The needs of the next call, as far as they are known.
    pub needed: Amount,
}

/// Lets a task wait until the call that was refused fits. The caller puts its job off in the same transaction. Returns false if the call
/// fits by now.
pub async fn wait(
    conn: &mut PgConnection,
    (task_id, job_id): (Uuid, i64),
    refusal: &Refusal,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    let (owner, key) = refusal.owner.columns();
    sqlx::query_scalar!(
        r#"select dalsegno.wait_for_budget($1, $2, $3, $4, $5, $6, $7) as "waits!""#,
        task_id,
        job_id,
        owner,
        key,
        refusal.call.micros,
        refusal.call.tokens,
        now,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("let a task wait for its budget"))
}

/// Returns the wait of a task. It may be over if the job of the task is not put off any more.
pub async fn wait_of(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<BudgetWait>, StatementError> {
    let row = sqlx::query!(
        "select owner, key, since, needed_micros, needed_tokens from dalsegno.budget_waits where task_id = $1",
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the wait of a task for its budget"))?;
    Ok(row.map(|row| BudgetWait {
        owner: row.owner,
        key: row.key,
        since: row.since,
        needed: Amount { micros: row.needed_micros, tokens: row.needed_tokens },
    }))
}

/// Returns the budgets that those of these tasks wait for which wait for one, by owner and key: `agent/writer`, `day`.
pub async fn awaited_by(
    executor: impl PgExecutor<'_>,
    task_ids: &[Uuid],
) -> Result<HashMap<Uuid, String>, StatementError> {
    let rows = sqlx::query!(
        "select task_id, owner, key from dalsegno.budget_waits where task_id = any ($1)",
        task_ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the budgets that tasks wait for"))?;
    Ok(rows.into_iter().map(|row| (row.task_id, budget_subject(&row.owner, &row.key))).collect())
}

/// Wakes the tasks for which a budget has space, in the order in which they were added. Returns their number.
pub async fn wake(
    executor: impl PgExecutor<'_>,
    owner: &str,
    key: &str,
    now: DateTime<Utc>,
) -> Result<i32, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.wake_for_budget($1, $2, $3) as "n!""#, owner, key, now)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("wake the tasks that wait for a budget"))
}

/// Wakes tasks after a change of the budget of their campaign, which has no period.
pub async fn wake_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<i32, StatementError> {
    wake(executor, "campaign", &campaign_id.to_string(), DateTime::UNIX_EPOCH).await
}

/// Wakes a task after a change of its own budget, which has no period.
pub async fn wake_of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<i32, StatementError> {
    wake(executor, "task", &task_id.to_string(), DateTime::UNIX_EPOCH).await
}

/// Lists the budgets that tasks wait for, as owner and key.
pub async fn list_awaited(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<(String, String)>, StatementError> {
    let rows =
        sqlx::query!("select distinct owner, key from dalsegno.budget_waits order by owner, key")
            .fetch_all(executor)
            .await
            .map_err(StatementError::to("list the budgets that tasks wait for"))?;
    Ok(rows.into_iter().map(|row| (row.owner, row.key)).collect())
}

/// The tasks that wait for a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedBudget {
    pub owner: String,
    pub key: String,
    pub tasks: i64,
    /// The begin of the longest wait.
    pub since: DateTime<Utc>,
    /// The largest needs of a call.
    pub needed: Amount,
}

/// Lists the budgets that tasks wait for, those with the longest wait first.
pub async fn list_waits(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<AwaitedBudget>, StatementError> {
    let rows = sqlx::query!(
        r#"select owner, key, count(*) as "tasks!", min(since) as "since!", max(needed_micros) as "micros!", max(needed_tokens) as "tokens!"
             from dalsegno.budget_waits group by owner, key order by 4 limit $1"#,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the waits for budgets"))?;
    let awaited = rows.into_iter().map(|row| AwaitedBudget {
        owner: row.owner,
        key: row.key,
        tasks: row.tasks,
        since: row.since,
        needed: Amount { micros: row.micros, tokens: row.tokens },
    });
    Ok(awaited.collect())
}

/// Counts the open tasks that wait, by kind of owner.
pub async fn count_waiting(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<(String, i64)>, StatementError> {
    let rows = sqlx::query_file!("src/domain/budgets/count_waiting.sql")
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("count the tasks that wait for budgets"))?;
    Ok(rows.into_iter().map(|row| (row.owner, row.n)).collect())
}
