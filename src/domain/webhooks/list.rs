//! Webhooks as the API shows them.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, Webhook};
use crate::domain::{
    StatementError,
    ids::{self, NotFound, PartialId},
};

/// Lists all webhooks, the oldest first. There are few.
pub async fn list(executor: impl PgExecutor<'_>) -> Result<Vec<Webhook>, StatementError> {
    read(executor, None).await
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Webhook, Error> {
    read(executor, Some(id)).await?.pop().ok_or(Error::Unknown(id))
}

/// Resolves the id of a webhook that a person has given.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("webhook", "webhook ls"),
        "dalsegno.webhooks",
        "null::uuid",
        "array_to_string(t.kinds, ', ')"
    )
}

/// Resolves the id of a delivery that a person has given.
pub async fn find_delivery(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("delivery", "webhook deliveries"),
        "dalsegno.webhook_deliveries",
        "null::uuid",
        "t.kind || ', ' || t.state"
    )
}

async fn read(
    executor: impl PgExecutor<'_>,
    id: Option<Uuid>,
) -> Result<Vec<Webhook>, StatementError> {
    sqlx::query_as!(
        Webhook,
        r#"select w.id as "id!", w.url as "url!", w.kinds as "kinds!", w.campaign_id, w.disabled_at is null as "enabled!",
                  w.disabled_because, w.failing_since, w.created_at as "created_at!",
                  (select max(s.valid_until) from dalsegno.webhook_secrets as s where s.webhook_id = w.id) as rotates_until
             from dalsegno.webhooks as w
            where $1::uuid is null or w.id = $1
            order by w.id"#,
        id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the webhooks"))
}
