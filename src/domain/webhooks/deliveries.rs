//! Deliveries as the API shows them, and the removal of old ones.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Error;
use crate::domain::{Page, StatementError};

/// One message to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Delivery {
    /// The id, which the receiver gets as `webhook-id`.
    pub id: Uuid,
    pub webhook_id: Uuid,
    /// The task that ended, or whose call reached a soft limit. Null for a test, and for a call without a task.
    pub task_id: Option<Uuid>,
    /// The campaign whose call reached a soft limit. Null for other kinds.
    #[serde(default)]
    pub campaign_id: Option<Uuid>,
    pub kind: String,
    pub state: State,
    /// Number of attempts since it was last put on the queue.
    pub attempts: i32,
    pub last_status: Option<i16>,
    pub last_error: Option<String>,
    pub job_id: Option<i64>,
    /// Time at which the task ended.
    pub created_at: DateTime<Utc>,
    pub next_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = DeliveryState)]
pub enum State {
    /// Waits for its next attempt.
    Waiting,
    Delivered,
    /// All attempts have failed.
    Failed,
    /// Not sent, because its webhook is disabled.
    Held,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    pub webhook_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    pub state: Option<State>,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Held => "held",
        }
    }
}

/// Lists deliveries, the newest first.
pub async fn deliveries(
    executor: impl PgExecutor<'_>,
    filter: Filter,
    page: Page,
) -> Result<Vec<Delivery>, StatementError> {
    read(executor, None, filter, page).await
}

pub async fn get_delivery(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Delivery, Error> {
    let page = Page { after: None, limit: 1 };
    let found = read(executor, Some(id), Filter::default(), page).await?.pop();
    found.ok_or(Error::UnknownDelivery(id))
}

/// Deliveries of a webhook that were given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDeliveries {
    pub webhook_id: Uuid,
    pub url: String,
    pub campaign_id: Option<Uuid>,
    pub count: i64,
    /// Time of the event of the oldest one. A replay since then sends all of them.
    pub first_created_at: DateTime<Utc>,
    pub last_ended_at: DateTime<Utc>,
}

impl FailedDeliveries {
    /// Returns the command that sends them again, without quotes.
    pub fn replay_command(&self) -> String {
        let since = self.first_created_at.format("%FT%TZ");
        format!("dalsegno webhook replay --webhook {} --since {since}", self.webhook_id)
    }
}

/// Lists the enabled webhooks with deliveries that were given up since then.
pub async fn failed_since(
    executor: impl PgExecutor<'_>,
    since: DateTime<Utc>,
) -> Result<Vec<FailedDeliveries>, StatementError> {
    sqlx::query_as!(
        FailedDeliveries,
        r#"select w.id as "webhook_id!", w.url as "url!", w.campaign_id, f.count as "count!",
                  f.first_created_at as "first_created_at!", f.last_ended_at as "last_ended_at!"
             from dalsegno.webhooks as w
                  cross join lateral (
                    select count(*), min(d.created_at) as first_created_at, max(d.ended_at) as last_ended_at
                      from dalsegno.webhook_deliveries as d
                     where d.webhook_id = w.id and d.state = 'failed' and d.ended_at >= $1) as f
            where w.disabled_at is null and f.count > 0
            order by w.id"#,
        since,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("count the failed deliveries"))
}

/// Returns the time of the oldest event that a webhook which fails since then has not delivered.
pub async fn oldest_missed(
    executor: impl PgExecutor<'_>,
    webhook_id: Uuid,
    failing_since: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    sqlx::query_scalar!(
        "select min(created_at) from dalsegno.webhook_deliveries
          where webhook_id = $1 and (state = 'waiting' or state = 'failed' and ended_at >= $2)",
        webhook_id,
        failing_since,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the oldest missed delivery"))
}

/// Removes the deliveries about these tasks. Returns their number.
pub async fn remove_of_tasks(
    executor: impl PgExecutor<'_>,
    task_ids: &[Uuid],
) -> Result<i64, StatementError> {
    sqlx::query!("delete from dalsegno.webhook_deliveries where task_id = any($1)", task_ids)
        .execute(executor)
        .await
        .map(|removed| i64::try_from(removed.rows_affected()).unwrap_or(i64::MAX))
        .map_err(StatementError::to("remove the deliveries of tasks"))
}

/// Removes the deliveries of budget warnings about calls of a campaign that belong to no task. Returns their number.
pub async fn remove_warnings_without_task(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<i64, StatementError> {
    sqlx::query!(
        "delete from dalsegno.webhook_deliveries
          where kind = 'budget.warning' and task_id is null and body::jsonb #>> '{data,campaign_id}' = $1",
        campaign_id.to_string(),
    )
    .execute(executor)
    .await
    .map(|removed| i64::try_from(removed.rows_affected()).unwrap_or(i64::MAX))
    .map_err(StatementError::to("remove the budget warnings of a campaign"))
}

/// Removes up to `limit` deliveries from before this moment that are not about to be sent. Returns their number.
pub async fn remove_old(
    executor: impl PgExecutor<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StatementError> {
    // A waiting delivery is sent within days, or its job is gone permanently.
    sqlx::query!(
        "delete from dalsegno.webhook_deliveries
          where id in (select id from dalsegno.webhook_deliveries
                        where created_at < $1 and coalesce(next_at, created_at) < $1 limit $2)",
        before,
        limit,
    )
    .execute(executor)
    .await
    .map(|removed| removed.rows_affected())
    .map_err(StatementError::to("remove old deliveries"))
}

async fn read(
    executor: impl PgExecutor<'_>,
    id: Option<Uuid>,
    filter: Filter,
    page: Page,
) -> Result<Vec<Delivery>, StatementError> {
    sqlx::query_as!(
        Delivery,
        r#"select id, webhook_id, task_id, kind, state as "state: State", attempts, last_status, last_error, job_id, created_at,
                  next_at, ended_at,
                  case when kind = 'budget.warning' then (body::jsonb #>> '{data,campaign_id}')::uuid end as "campaign_id?"
             from dalsegno.webhook_deliveries
            -- A range, because `get_delivery` runs with a plan made without the values, which reads the index for a range only.
            where id between coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) and coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
              and ($2::uuid is null or webhook_id = $2) and ($3::uuid is null or task_id = $3)
              and ($4::text is null or state = $4) and ($5::uuid is null or id < $5)
            order by id desc limit $6"#,
        id,
        filter.webhook_id,
        filter.task_id,
        filter.state.map(State::as_str),
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list deliveries"))
}
