//! The budget of a task.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Task, get};
use crate::domain::{
    Amount, StatementError,
    amount::{Limit, Owner, Refusal},
    budgets,
};

/// A change of a task's budget. `None` leaves a limit as it is, `Some(None)` removes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetChange {
    pub micros: Option<Option<i64>>,
    pub tokens: Option<Option<i64>>,
    pub soft_micros: Option<Option<i64>>,
    pub soft_tokens: Option<Option<i64>>,
}

impl Task {
    /// Checks that the budget allows a call beside what the task has spent, and `spent` in its running turn.
    pub fn check_budget(&self, spent: Amount, needed: Amount) -> Result<(), Refusal> {
        let limit = Limit { micros: self.budget_micros, tokens: self.budget_tokens };
        let before = Amount { micros: self.spent_micros, tokens: self.spent_tokens };
        limit.check(Owner::Task(self.id), before + spent, Amount::ZERO, needed)
    }
}

/// Checks that a task's own budget allows a call outside of its turn, such as a summary that the turn waits for.
pub async fn check_budget(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    needed: Amount,
) -> Result<(), Error> {
    Ok(get(executor, id).await?.check_budget(Amount::ZERO, needed)?)
}

/// Charges a task for a call outside of its turn.
pub async fn charge(executor: impl PgExecutor<'_>, id: Uuid, spent: Amount) -> Result<(), Error> {
    let charged = sqlx::query!(
        "update dalsegno.tasks set spent_micros = spent_micros + $2, spent_tokens = spent_tokens + $3 where id = $1",
        id,
        spent.micros,
        spent.tokens,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("charge a task"))?;
    if charged.rows_affected() == 1 { Ok(()) } else { Err(Error::Unknown(id)) }
}

/// Locks a task until the transaction ends, so that the limits of its budget stay as they are read, and returns its soft limits.
pub async fn hold_budget(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Limit, Error> {
    let soft = sqlx::query!(
        "select soft_micros, soft_tokens from dalsegno.tasks where id = $1 for no key update",
        id
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("lock a task"))?
    .ok_or(Error::Unknown(id))?;
    Ok(Limit { micros: soft.soft_micros, tokens: soft.soft_tokens })
}

/// Changes the limits of a task, which continues if it waits for its budget and the next call fits now.
pub async fn change_budget(
    conn: &mut PgConnection,
    id: Uuid,
    change: BudgetChange,
) -> Result<Task, Error> {
    let limits = [change.micros, change.tokens, change.soft_micros, change.soft_tokens];
    if let Some(empty) = limits.into_iter().flatten().flatten().find(|limit| *limit <= 0) {
        return Err(Error::EmptyBudget(empty));
    }
    sqlx::query!(
        "update dalsegno.tasks
            set budget_micros = case when $2 then $3 else budget_micros end,
                budget_tokens = case when $4 then $5 else budget_tokens end,
                soft_micros = case when $6 then $7 else soft_micros end,
                soft_tokens = case when $8 then $9 else soft_tokens end,
                warned_at = case when $6 or $8 then null else warned_at end
          where id = $1",
        id,
        change.micros.is_some(),
        change.micros.flatten(),
        change.tokens.is_some(),
        change.tokens.flatten(),
        change.soft_micros.is_some(),
        change.soft_micros.flatten(),
        change.soft_tokens.is_some(),
        change.soft_tokens.flatten(),
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("set the budget of a task"))?;
    budgets::wake_of_task(&mut *conn, id).await?;
    get(conn, id).await
}
