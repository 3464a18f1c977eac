//! Changes to all deliveries of a webhook, in many short transactions. There may be hundreds of thousands, and ending tasks write to the
//! same tables. Replays have a line in the audit log for each transaction, a removal has one. A call that was interrupted can be repeated
//! and continues.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::{
    Error,
    deliver::{Page, replay_page},
    disable,
};
use crate::domain::{
    StatementError,
    audit::{self, Action, Actor},
    transaction::{Transactions, commit},
};

const BATCH: i64 = 500;

/// Sends everything again that was created since then and not delivered. Returns the number of deliveries.
pub async fn replay_since(
    transactions: &impl Transactions,
    who: &Actor,
    id: Uuid,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<usize, Error> {
    let (mut n_all, mut after) = (0, None);
    loop {
        let mut tx = transactions.begin().await?;
        let page = replay_page(&mut tx, id, (since, after), BATCH, now).await?;
        let Page { n_replayed, last } = page;
        if after.is_none() || n_replayed > 0 {
            let data = json!({ "since": since, "replayed": n_replayed });
            audit::write(&mut *tx, who, Action::WebhookReplay, id, data, now).await?;
        }
        commit(tx).await?;
        n_all += n_replayed;
        match last {
            Some(last) => after = Some(last),
            None => return Ok(n_all),
        }
    }
}

/// Removes a webhook and its deliveries. Disables it first, so that nothing more is sent.
pub async fn remove(
    transactions: &impl Transactions,
    who: &Actor,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let mut tx = transactions.begin().await?;
    disable(&mut tx, id, "it is being removed", now).await?;
    audit::write(&mut *tx, who, Action::WebhookRemove, id, json!({}), now).await?;
    commit(tx).await?;
    loop {
        let mut tx = transactions.begin().await?;
        let removed = sqlx::query!(
            "delete from dalsegno.webhook_deliveries
              where id in (select id from dalsegno.webhook_deliveries where webhook_id = $1 limit $2)",
            id,
            BATCH,
        )
        .execute(&mut *tx)
        .await
        .map_err(StatementError::to("remove the deliveries of a webhook"))?;
        commit(tx).await?;
        if removed.rows_affected() == 0 {
            break;
        }
    }
    // Also removes deliveries that were held since the last batch.
    let mut tx = transactions.begin().await?;
    sqlx::query!("delete from dalsegno.webhooks where id = $1", id)
        .execute(&mut *tx)
        .await
        .map_err(StatementError::to("remove a webhook"))?;
    Ok(commit(tx).await?)
}
