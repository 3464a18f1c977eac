//! Repeating erasures that were ended by a worker of an earlier version.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, enqueue};
use crate::{db, domain::StatementError};

/// Minimum time between two repetitions, longer than an erasure takes. An older worker may get the job again.
const PAUSE: TimeDelta = TimeDelta::minutes(1);
/// Erasures that one transaction repeats. After an upgrade, all earlier ones are due.
const BATCH: i64 = 20;

/// Enqueues again some erasures whose worker knew less of the schema than this one. Returns their campaigns.
pub async fn enqueue_incomplete(
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, Error> {
    let campaigns = sqlx::query_scalar!(
        "update dalsegno.erasures set looked_again_at = $2
          where id in (select id from dalsegno.erasures
                        where ended_at is not null and coalesce(covers, 0) < $1 and (looked_again_at is null or looked_again_at < $3)
                        order by ended_at limit $4 for update skip locked)
         returning campaign_id",
        db::newest_known(),
        now,
        now - PAUSE,
        BATCH,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("find incomplete erasures"))?;
    for campaign_id in &campaigns {
        enqueue(&mut *conn, *campaign_id).await?;
    }
    Ok(campaigns)
}
