//! The calls behind a cost report, as the ledger has them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::{
    StatementError,
    usage::{LedgerCall, Outcome, Purpose},
};

/// A filter of calls. Unset fields match everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFilter<'a> {
    pub since: Option<DateTime<Utc>>,
    /// The end of the period, which is not part of it.
    pub until: Option<DateTime<Utc>>,
    pub campaign_id: Option<Uuid>,
    /// Limits the list to these campaigns.
    pub within: Option<&'a [Uuid]>,
    pub agent: Option<&'a str>,
    pub model: Option<&'a str>,
    pub provider: Option<&'a str>,
    pub purpose: Option<Purpose>,
    /// The user for whom the campaign works now; empty for campaigns without one.
    pub user: Option<&'a str>,
    /// Leaves out reruns, which have a budget of their own.
    pub without_reruns: bool,
}

/// Order of the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CostCallOrder)]
pub enum CallOrder {
    #[default]
    Newest,
    /// The highest costs first, on one page.
    Costliest,
}

/// A call of the ledger with what it was made for. The ledger outlives campaigns, tasks and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CostCall {
    pub campaign_id: Uuid,
    pub agent: String,
    pub task_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    /// The turn that it is charged to.
    pub turn: Option<i32>,
    #[serde(flatten)]
    pub call: LedgerCall,
}

/// A row of both statements.
struct Row {
    id: i64,
    campaign_id: Uuid,
    agent: String,
    task_id: Option<Uuid>,
    session_id: Option<Uuid>,
    turn: Option<i32>,
    purpose: Purpose,
    outcome: Outcome,
    provider: String,
    model: String,
    provider_message_id: Option<String>,
    called_at: DateTime<Utc>,
    first_byte_ms: Option<i32>,
    total_ms: Option<i32>,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cache_read_tokens: Option<i64>,
    cache_creation_tokens: Option<i64>,
    cost_micros: i64,
    has_price: bool,
}

/// Lists calls, the newest first, from the one before `before` on.
pub async fn newest_calls(
    executor: impl PgExecutor<'_>,
    filter: &CallFilter<'_>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<CostCall>, StatementError> {
    let rows = sqlx::query_file_as!(
        Row,
        "src/domain/costs/calls.sql",
        filter.since,
        filter.until,
        filter.campaign_id,
        filter.within as Option<&[Uuid]>,
        filter.agent,
        filter.model,
        filter.provider,
        filter.purpose as Option<Purpose>,
        filter.user,
        before,
        limit,
        filter.without_reruns,
    );
    let rows = rows.fetch_all(executor).await.map_err(StatementError::to("list calls"))?;
    Ok(rows.into_iter().map(CostCall::from).collect())
}

/// Lists the calls with the highest costs.
pub async fn costliest_calls(
    executor: impl PgExecutor<'_>,
    filter: &CallFilter<'_>,
    limit: i64,
) -> Result<Vec<CostCall>, StatementError> {
    let rows = sqlx::query_file_as!(
        Row,
        "src/domain/costs/costliest_calls.sql",
        filter.since,
        filter.until,
        filter.campaign_id,
        filter.within as Option<&[Uuid]>,
        filter.agent,
        filter.model,
        filter.provider,
        filter.purpose as Option<Purpose>,
        filter.user,
        limit,
        filter.without_reruns,
    );
    let rows = rows.fetch_all(executor).await;
    let rows = rows.map_err(StatementError::to("list the most expensive calls"))?;
    Ok(rows.into_iter().map(CostCall::from).collect())
}

impl From<Row> for CostCall {
    fn from(row: Row) -> Self {
        Self {
            campaign_id: row.campaign_id,
            agent: row.agent,
            task_id: row.task_id,
            session_id: row.session_id,
            turn: row.turn,
            call: LedgerCall {
                id: row.id,
                purpose: row.purpose,
                outcome: row.outcome,
                provider: row.provider,
                model: row.model,
                provider_message_id: row.provider_message_id,
                called_at: row.called_at,
                first_byte_ms: row.first_byte_ms,
                total_ms: row.total_ms,
                input_tokens: row.input_tokens,
                output_tokens: row.output_tokens,
                cache_read_tokens: row.cache_read_tokens,
                cache_creation_tokens: row.cache_creation_tokens,
                cost_micros: row.cost_micros,
                has_price: row.has_price,
            },
        }
    }
}
