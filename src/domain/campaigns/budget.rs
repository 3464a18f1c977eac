//! Reserve before the call, settle after it, refuse with words.
//!
//! Race: many turns of one campaign end and begin at the limit at once. Each changes the one row of the budget with a
//! condition in the statement itself, so the row's lock decides, and what is spent and set aside together never
//! passes the limit by a reservation. A call that costs more than was set aside for it is still charged in full.

use serde::Serialize;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::Error;
use crate::domain::{
    Amount, Failed,
    amount::{Limit, Owner, Refusal},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    pub limit: Limit,
    pub spent: Amount,
    pub reserved: Amount,
}

/// `None` leaves a limit as it is, `Some(None)` takes it away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitChange {
    pub micros: Option<Option<i64>>,
    pub tokens: Option<Option<i64>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Database(#[from] Failed),
}

pub async fn budget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Option<Budget>, Failed> {
    let row = sqlx::query!(
        "select limit_micros, limit_tokens, spent_micros, spent_tokens, reserved_micros, reserved_tokens
           from dalsegno.campaign_budgets where campaign_id = $1",
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(Failed::to("read the budget of a campaign"))?;
    Ok(row.map(|row| Budget {
        limit: Limit { micros: row.limit_micros, tokens: row.limit_tokens },
        spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
        reserved: Amount { micros: row.reserved_micros, tokens: row.reserved_tokens },
    }))
}

/// Changes limits. What is already spent and set aside stays.
pub async fn change_limit(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    change: LimitChange,
) -> Result<Budget, Error> {
    let changed = sqlx::query!(
        "update dalsegno.campaign_budgets
            set limit_micros = case when $2 then $3 else limit_micros end,
                limit_tokens = case when $4 then $5 else limit_tokens end
          where campaign_id = $1",
        campaign_id,
        change.micros.is_some(),
        change.micros.flatten(),
        change.tokens.is_some(),
        change.tokens.flatten(),
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to("set the budget of a campaign"))?;
    match budget(conn, campaign_id).await? {
        Some(budget) if changed.rows_affected() == 1 => Ok(budget),
        _ => Err(Error::Unknown(campaign_id)),
    }
}

/// Sets `needed` aside, or says why not.
pub async fn reserve(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    needed: Amount,
) -> Result<(), ReserveError> {
    // A refusal can be out of date by the time it is worded: whoever was in the way may have settled since. Then
    // the next round takes what they left; the bound only keeps two busy tables from chasing each other.
    for _ in 0..3 {
        if try_reserve(&mut *conn, campaign_id, needed).await? {
            return Ok(());
        }
        let Some(budget) = budget(&mut *conn, campaign_id).await? else { break };
        budget.limit.admit(Owner::Campaign, budget.spent, budget.reserved, needed)?;
    }
    let action = "set aside a part of the budget of a campaign";
    Err(Failed { action, source: sqlx::Error::RowNotFound }.into())
}

/// Gives back what was set aside and charges what it really cost. Must hit one row.
pub async fn settle(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    reserved: Amount,
    spent: Amount,
) -> Result<(), Failed> {
    if reserved.is_zero() && spent.is_zero() {
        return Ok(());
    }
    let settled = sqlx::query!(
        "update dalsegno.campaign_budgets
            set reserved_micros = reserved_micros - $2, reserved_tokens = reserved_tokens - $3,
                spent_micros = spent_micros + $4, spent_tokens = spent_tokens + $5
          where campaign_id = $1",
        campaign_id,
        reserved.micros,
        reserved.tokens,
        spent.micros,
        spent.tokens,
    )
    .execute(executor)
    .await;
    let action = "settle the budget of a campaign";
    match settled.map_err(Failed::to(action))?.rows_affected() {
        1 => Ok(()),
        _ => Err(Failed { action, source: sqlx::Error::RowNotFound }),
    }
}

/// Without a transaction around both, the database has given the campaign a budget without limits by now.
pub(super) async fn open(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    limit: Limit,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.campaign_budgets (campaign_id, limit_micros, limit_tokens) values ($1, $2, $3)
         on conflict (campaign_id) do update set limit_micros = excluded.limit_micros, limit_tokens = excluded.limit_tokens",
        campaign_id,
        limit.micros,
        limit.tokens,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(Failed::to("open the budget of a campaign"))
}

async fn try_reserve(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    needed: Amount,
) -> Result<bool, Failed> {
    sqlx::query!(
        "update dalsegno.campaign_budgets
            set reserved_micros = reserved_micros + $2, reserved_tokens = reserved_tokens + $3
          where campaign_id = $1
            and (limit_micros is null or spent_micros + reserved_micros + $2 <= limit_micros)
            and (limit_tokens is null or spent_tokens + reserved_tokens + $3 <= limit_tokens)",
        campaign_id,
        needed.micros,
        needed.tokens,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
    .map_err(Failed::to("set aside a part of the budget of a campaign"))
}
