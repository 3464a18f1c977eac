//! The budget for experiments: pays for reruns, apart from the budget of the turns.

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// The budget of a campaign that pays for reruns of its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExperimentBudget {
    /// Null: there is none, so models with a price are not called.
    #[schema(minimum = 1)]
    pub limit_micros: Option<i64>,
    pub spent_micros: i64,
}

pub async fn experiment_budget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<ExperimentBudget, StatementError> {
    let found = sqlx::query_as!(
        ExperimentBudget,
        "select limit_micros, spent_micros from dalsegno.experiment_budgets where campaign_id = $1",
        campaign_id,
    );
    let found = found.fetch_optional(executor).await;
    Ok(found.map_err(StatementError::to("read the budget for experiments"))?.unwrap_or_default())
}

/// Reads the budget, and locks it until the transaction ends.
pub async fn lock_experiment_budget(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<ExperimentBudget, StatementError> {
    let found = sqlx::query_as!(
        ExperimentBudget,
        "select limit_micros, spent_micros from dalsegno.experiment_budgets where campaign_id = $1 for update",
        campaign_id,
    );
    let found = found.fetch_optional(conn).await;
    // Without a row there is no budget, and nothing that could be reserved.
    Ok(found.map_err(StatementError::to("lock the budget for experiments"))?.unwrap_or_default())
}

/// Charges an amount, with or without a budget.
pub async fn charge_experiments(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    micros: i64,
) -> Result<(), StatementError> {
    if micros == 0 {
        return Ok(());
    }
    sqlx::query!(
        "insert into dalsegno.experiment_budgets as e (campaign_id, spent_micros) values ($1, $2)
         on conflict (campaign_id) do update set spent_micros = e.spent_micros + excluded.spent_micros",
        campaign_id,
        micros,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("charge the budget for experiments"))
}

/// Sets the limit, or removes it. What is spent stays.
pub(super) async fn set_experiment_limit(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    micros: Option<i64>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.experiment_budgets (campaign_id, limit_micros)
         select id, $2 from dalsegno.campaigns where id = $1
         on conflict (campaign_id) do update set limit_micros = excluded.limit_micros",
        campaign_id,
        micros,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("set the budget for experiments"))
}
