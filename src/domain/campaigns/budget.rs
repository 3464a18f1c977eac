//! The budget of a campaign, and changes of its limits. [`budgets`] reserves and settles it.

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, ExperimentBudget, experiments::set_experiment_limit};
use crate::domain::{
    Amount, StatementError,
    amount::{Balance, Limit, OnLimit},
    budgets,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Budget {
    pub limit: Limit,
    /// Spending at which a warning is written, once.
    #[serde(default)]
    pub soft: Limit,
    pub spent: Amount,
    pub reserved: Amount,
    /// Effect of the limit on tasks: they wait until there is space, or fail.
    #[serde(default)]
    pub on_limit: OnLimit,
    /// The budget that pays for reruns. The amounts above leave it out.
    #[serde(default)]
    pub experiments: ExperimentBudget,
}

impl Budget {
    pub fn balance(&self) -> Balance {
        let Self { limit, soft, spent, reserved, .. } = *self;
        Balance { limit, soft, spent, reserved }
    }
}

/// `None` leaves a limit as it is, `Some(None)` takes it away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitChange {
    pub micros: Option<Option<i64>>,
    pub tokens: Option<Option<i64>>,
    pub soft_micros: Option<Option<i64>>,
    pub soft_tokens: Option<Option<i64>>,
    /// The limit of the budget for experiments, in money.
    pub experiments_micros: Option<Option<i64>>,
    pub on_limit: Option<OnLimit>,
}

pub async fn budget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Option<Budget>, StatementError> {
    let row = sqlx::query!(
        r#"select b.limit_micros, b.limit_tokens, b.reserved_micros, b.reserved_tokens, b.on_limit as "on_limit: OnLimit",
                  b.soft_micros, b.soft_tokens,
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
        soft: Limit { micros: row.soft_micros, tokens: row.soft_tokens },
        spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
        reserved: Amount { micros: row.reserved_micros, tokens: row.reserved_tokens },
        on_limit: row.on_limit,
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

/// A campaign whose budget is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpentBudget {
    pub campaign_id: Uuid,
    pub name: String,
    /// True if it is used up in money. Otherwise it is used up in tokens.
    pub in_money: bool,
    pub on_limit: OnLimit,
}

/// Lists campaigns that are active and whose budget is used up.
pub async fn spent_budgets(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<SpentBudget>, StatementError> {
    sqlx::query_as!(
        SpentBudget,
        r#"select c.id as campaign_id, c.name, b.on_limit as "on_limit: OnLimit",
                 coalesce(b.spent_micros + b.reserved_micros
                   + (select coalesce(sum(s.spent_micros), 0) from dalsegno.campaign_spending as s where s.campaign_id = c.id) >= b.limit_micros, false) as "in_money!"
           from dalsegno.campaign_budgets as b join dalsegno.campaigns as c on c.id = b.campaign_id
          where c.status = 'active' and (b.limit_micros is not null or b.limit_tokens is not null)
            and (b.spent_micros + b.reserved_micros
                   + (select coalesce(sum(s.spent_micros), 0) from dalsegno.campaign_spending as s where s.campaign_id = c.id) >= b.limit_micros
                 or b.spent_tokens + b.reserved_tokens
                   + (select coalesce(sum(s.spent_tokens), 0) from dalsegno.campaign_spending as s where s.campaign_id = c.id) >= b.limit_tokens)
          order by c.id desc limit $1"#,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the budgets that are used up"))
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

/// Locks the budget of a campaign until the transaction ends: its limits stay as they are read.
pub async fn hold_budget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!(
        "select campaign_id from dalsegno.campaign_budgets where campaign_id = $1 for no key update",
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("lock the budget of a campaign"))
}

/// Changes limits. Spent and reserved amounts stay. Tasks that fit now continue.
pub async fn change_limit(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    change: LimitChange,
) -> Result<Budget, Error> {
    let changed = sqlx::query!(
        "update dalsegno.campaign_budgets
            set limit_micros = case when $2 then $3 else limit_micros end,
                limit_tokens = case when $4 then $5 else limit_tokens end, on_limit = coalesce($6, on_limit),
                soft_micros = case when $7 then $8 else soft_micros end,
                soft_tokens = case when $9 then $10 else soft_tokens end,
                warned_at = case when $7 or $9 then null else warned_at end
          where campaign_id = $1",
        campaign_id,
        change.micros.is_some(),
        change.micros.flatten(),
        change.tokens.is_some(),
        change.tokens.flatten(),
        change.on_limit.map(OnLimit::as_str),
        change.soft_micros.is_some(),
        change.soft_micros.flatten(),
        change.soft_tokens.is_some(),
        change.soft_tokens.flatten(),
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("set the budget of a campaign"))?;
    if let Some(micros) = change.experiments_micros {
        set_experiment_limit(&mut *conn, campaign_id, micros).await?;
    }
    budgets::wake_of_campaign(&mut *conn, campaign_id).await?;
    match budget(conn, campaign_id).await? {
        Some(budget) if changed.rows_affected() == 1 => Ok(budget),
        _ => Err(Error::Unknown(campaign_id)),
    }
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
