//! The budget of a campaign: reserved before a call, settled after it.
//!
//! Race: many turns of one campaign begin and end at the limit at once. Each changes the one row of the budget, with the condition in the
//! statement itself, so that the row's lock decides. A reservation never takes spent and reserved amounts together above the limit. A call
//! that costs more than its reservation is still charged in full.
//!
//! Spending without a reservation needs no permission. It is added up beside that row, in one of several rows: otherwise all turns of a
//! campaign without a limit would end one after the other. It counts in every sum. A limit that is set during such a turn counts its
//! spending as soon as the turn ends.

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, ExperimentBudget, experiments::set_experiment_limit};
use crate::domain::{
    Amount, StatementError,
    amount::{Limit, Owner, Refusal},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Budget {
    pub limit: Limit,
    pub spent: Amount,
    pub reserved: Amount,
    /// The budget that pays for reruns. It is no part of the amounts above.
    #[serde(default)]
    pub experiments: ExperimentBudget,
}

/// `None` leaves a limit as it is, `Some(None)` takes it away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitChange {
    pub micros: Option<Option<i64>>,
    pub tokens: Option<Option<i64>>,
    /// The limit of the budget for experiments, in money.
    pub experiments_micros: Option<Option<i64>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Database(#[from] StatementError),
}

pub async fn budget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Option<Budget>, StatementError> {
    let row = sqlx::query!(
        r#"select b.limit_micros, b.limit_tokens, b.reserved_micros, b.reserved_tokens,
                  (b.spent_micros + s.micros)::bigint as "spent_micros!", (b.spent_tokens + s.tokens)::bigint as "spent_tokens!",
                  e.limit_micros as "experiments_limit_micros?", coalesce(e.spent_micros, 0) as "experiments_spent_micros!"
             from dalsegno.campaign_budgets as b left join dalsegno.experiment_budgets as e on e.campaign_id = b.campaign_id,
                  (select coalesce(sum(spent_micros), 0) as micros, coalesce(sum(spent_tokens), 0) as tokens
                     from dalsegno.campaign_spending where campaign_id = $1) as s
            where b.campaign_id = $1"#,
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the budget of a campaign"))?;
    Ok(row.map(|row| Budget {
        limit: Limit { micros: row.limit_micros, tokens: row.limit_tokens },
        spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
        reserved: Amount { micros: row.reserved_micros, tokens: row.reserved_tokens },
        experiments: ExperimentBudget {
            limit_micros: row.experiments_limit_micros,
            spent_micros: row.experiments_spent_micros,
        },
    }))
}

/// Lists paused campaigns with their names, the newest first.
pub async fn paused(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<(Uuid, String)>, StatementError> {
    let rows = sqlx::query!(
        "select id, name from dalsegno.campaigns where status = 'paused' order by id desc limit $1",
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the paused campaigns"))?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// Lists campaigns that are active and whose budget is used up, with their names.
pub async fn spent_budgets(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<(Uuid, String)>, StatementError> {
    let rows = sqlx::query!(
        "select c.id, c.name from dalsegno.campaign_budgets as b join dalsegno.campaigns as c on c.id = b.campaign_id
          where c.status = 'active' and (b.limit_micros is not null or b.limit_tokens is not null)
            and (b.spent_micros + b.reserved_micros
                   + (select coalesce(sum(s.spent_micros), 0) from dalsegno.campaign_spending as s where s.campaign_id = c.id) >= b.limit_micros
                 or b.spent_tokens + b.reserved_tokens
                   + (select coalesce(sum(s.spent_tokens), 0) from dalsegno.campaign_spending as s where s.campaign_id = c.id) >= b.limit_tokens)
          order by c.id desc limit $1",
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the budgets that are used up"))?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// Counts the campaigns that have a limit in money and are not closed.
pub async fn limited_in_money(executor: impl PgExecutor<'_>) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.campaign_budgets as b join dalsegno.campaigns as c on c.id = b.campaign_id
            where b.limit_micros is not null and c.status <> 'closed'"#,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count campaigns with a budget in money"))
}

/// Changes limits. Spent and reserved amounts stay.
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
    .map_err(StatementError::to("set the budget of a campaign"))?;
    if let Some(micros) = change.experiments_micros {
        set_experiment_limit(&mut *conn, campaign_id, micros).await?;
    }
    match budget(conn, campaign_id).await? {
        Some(budget) if changed.rows_affected() == 1 => Ok(budget),
        _ => Err(Error::Unknown(campaign_id)),
    }
}

/// Reserves `needed`, or returns the refusal.
pub async fn reserve(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    needed: Amount,
) -> Result<(), ReserveError> {
    // A refusal can be outdated when its numbers are read: another turn may have settled meanwhile. The next round then takes what that
    // turn released. The bound ends the loop on a very busy budget.
    for _ in 0..3 {
        if try_reserve(&mut *conn, campaign_id, needed).await? {
            return Ok(());
        }
        let Some(budget) = budget(&mut *conn, campaign_id).await? else { break };
        let owner = Owner::Campaign(campaign_id);
        budget.limit.check(owner, budget.spent, budget.reserved, needed)?;
    }
    let action = "reserve a part of the budget of a campaign";
    Err(StatementError { action, source: sqlx::Error::RowNotFound }.into())
}

/// Releases a reservation and charges the actual cost. Fails if the budget's row is missing.
pub async fn settle_reservation(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    reserved: Amount,
    spent: Amount,
) -> Result<(), StatementError> {
    if reserved.is_zero() {
        return add(executor, campaign_id, spent).await;
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
    match settled.map_err(StatementError::to(action))?.rows_affected() {
        1 => Ok(()),
        _ => Err(StatementError { action, source: sqlx::Error::RowNotFound }),
    }
}

/// Charges an amount without a reservation.
async fn add(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    spent: Amount,
) -> Result<(), StatementError> {
    if spent.is_zero() {
        return Ok(());
    }
    sqlx::query!(
        "insert into dalsegno.campaign_spending as s (campaign_id, shard, spent_micros, spent_tokens)
         values ($1, (pg_backend_pid() & 63)::smallint, $2, $3)
         on conflict (campaign_id, shard) do update
            set spent_micros = s.spent_micros + excluded.spent_micros, spent_tokens = s.spent_tokens + excluded.spent_tokens",
        campaign_id,
        spent.micros,
        spent.tokens,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("charge a campaign"))
}

/// Sets the limits of a new campaign. If the transaction that created the campaign has committed before, a deferred trigger has already
/// made the row, without limits.
pub(super) async fn open(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    limit: Limit,
) -> Result<(), StatementError> {
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
    .map_err(StatementError::to("create the budget of a campaign"))
}

async fn try_reserve(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    needed: Amount,
) -> Result<bool, StatementError> {
    sqlx::query!(
        "update dalsegno.campaign_budgets
            set reserved_micros = reserved_micros + $2, reserved_tokens = reserved_tokens + $3
          where campaign_id = $1
            and (limit_micros is null or spent_micros + reserved_micros + $2 + (
                  select coalesce(sum(s.spent_micros), 0) from dalsegno.campaign_spending as s where s.campaign_id = $1) <= limit_micros)
            and (limit_tokens is null or spent_tokens + reserved_tokens + $3 + (
                  select coalesce(sum(s.spent_tokens), 0) from dalsegno.campaign_spending as s where s.campaign_id = $1) <= limit_tokens)",
        campaign_id,
        needed.micros,
        needed.tokens,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
    .map_err(StatementError::to("reserve a part of the budget of a campaign"))
}
