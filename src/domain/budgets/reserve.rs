//! Reservations before a call, and charges after it.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::{Amount, StatementError, amount::Refusal};

/// The budgets that a turn reserves in.
#[derive(Debug, Clone, Copy)]
pub struct Payers<'a> {
    pub campaign_id: Uuid,
    /// The rows of its agent, its user and the day. If there are some, -1 says that the campaign has no limits: nothing is reserved in its
    /// budget.
    pub budgets: &'a [i64],
}

#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Database(#[from] StatementError),
}

/// The agent and the task of a call.
#[derive(Debug, Clone, Copy)]
pub struct Spender<'a> {
    pub agent: &'a str,
    pub task_id: Option<Uuid>,
}

impl Payers<'_> {
    /// Only the campaign.
    pub fn campaign(campaign_id: Uuid) -> Self {
        Self { campaign_id, budgets: &[] }
    }
}

/// Reserves `needed` in all budgets, or returns the refusal of the first one without space. The caller then rolls back.
pub async fn reserve(
    conn: &mut PgConnection,
    payers: Payers<'_>,
    needed: Amount,
    now: DateTime<Utc>,
) -> Result<(), ReserveError> {
    let refused = sqlx::query_scalar!(
        "select dalsegno.reserve_budgets($1, $2, $3, $4, $5)",
        payers.campaign_id,
        payers.budgets,
        needed.micros,
        needed.tokens,
        now,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("reserve a part of the budgets of a turn"))?;
    check_refusal(refused, needed)
}

/// Returns the refusal of `dalsegno.reserve_budgets` for a call as an error.
pub fn check_refusal(refused: Option<Value>, call: Amount) -> Result<(), ReserveError> {
    match refused {
        None => Ok(()),
        Some(refused) => Err(decode_refusal(refused, call)?.into()),
    }
}

/// Reads a refusal that the database returned for a call. The row of a day has no key: the day is its period.
pub(super) fn decode_refusal(mut refused: Value, call: Amount) -> Result<Refusal, StatementError> {
    if !refused["period"].is_null() {
        refused["key"] = refused["period"].take();
    }
    let refusal: Refusal = serde_json::from_value(refused).map_err(|error| StatementError {
        action: "read the refusal of a budget",
        source: sqlx::Error::Decode(error.into()),
    })?;
    Ok(Refusal { call, ..refusal })
}

/// Locks the budgets with all of their shares. A transaction that settles, and then waits or reserves, does so before: it must not take
/// the other shares while it holds its own.
pub async fn lock(
    executor: impl PgExecutor<'_>,
    payers: Payers<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "select dalsegno.lock_budgets($1, $2, $3) is null as locked",
        payers.campaign_id,
        payers.budgets,
        now,
    )
    .fetch_one(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("lock the budgets of a turn"))
}

/// Releases a reservation, charges the actual cost to all budgets that pay for the agent in the campaign, and wakes tasks for which there
/// is space now.
pub async fn settle(
    executor: impl PgExecutor<'_>,
    payers: Payers<'_>,
    spender: Spender<'_>,
    (reserved, spent): (Amount, Amount),
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    if reserved.is_zero() && spent.is_zero() {
        return Ok(());
    }
    sqlx::query!(
        "select dalsegno.settle_budgets($1, $2, $3, $4, $5, $6, $7, $8, $9) is null as settled",
        payers.campaign_id,
        spender.agent,
        spender.task_id,
        payers.budgets,
        reserved.micros,
        reserved.tokens,
        spent.micros,
        spent.tokens,
        now,
    )
    .fetch_one(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("settle the budgets of a turn"))
}
