//! Enqueuing deliveries: tests and replays. The database enqueues the first delivery of an event.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Delivery, Error, get, get_delivery};
use crate::{
    domain::{StatementError, ids},
    queue::{self, Job, Options, Policy, admin},
};

/// The job that sends a delivery. `dalsegno.tell_webhooks` enqueues it, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverWebhook {
    pub delivery_id: Uuid,
}

/// The result of replaying one page.
pub(super) struct Page {
    pub(super) n_replayed: usize,
    /// The last id, after which the next page begins. `None`: the page was empty.
    pub(super) last: Option<Uuid>,
}

/// Priority below the service's own upkeep jobs, the same as in the database.
const PRIORITY: i32 = 150;

impl Job for DeliverWebhook {
    const KIND: &'static str = "deliver_webhook";

    fn policy() -> Policy {
        Policy {
            queue: "upkeep",
            // Attempts of the job, for an unreachable database. The delivery counts its own attempts.
            max_attempts: 100,
            deadline: Some(Duration::from_secs(120)),
            ..Policy::default()
        }
    }
}

/// Sends a delivery again, or now instead of later, under the same id.
pub async fn replay(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Delivery, Error> {
    let webhook_id = sqlx::query_scalar!(
        "select webhook_id from dalsegno.webhook_deliveries where id = $1 for update",
        id
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("find a delivery"))?
    .ok_or(Error::UnknownDelivery(id))?;
    require_enabled(&mut *conn, webhook_id).await?;
    put_on_queue(&mut *conn, webhook_id, &[id], now).await?;
    get_delivery(conn, id).await
}

/// Replays a page of the deliveries that were created since then and not delivered, after `after`.
pub(super) async fn replay_page(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    (since, after): (DateTime<Utc>, Option<Uuid>),
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Page, Error> {
    require_enabled(&mut *conn, webhook_id).await?;
    let rows = sqlx::query!(
        r#"select id, job_id, state in ('failed', 'held') or next_at is not null as "is_idle!"
             from dalsegno.webhook_deliveries
            where webhook_id = $1 and created_at >= $2 and state <> 'delivered' and ($3::uuid is null or id > $3)
            order by id limit $4 for update"#,
        webhook_id,
        since,
        after,
        limit,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list deliveries to replay"))?;
    let last = rows.last().map(|row| row.id);
    // Skips deliveries that wait for their first attempt and will be sent anyway, unless their job is lost.
    let first = rows.iter().filter(|row| !row.is_idle).filter_map(|row| row.job_id);
    let gone = admin::list_ended_jobs(&mut *conn, &first.collect::<Vec<i64>>()).await?;
    let is_lost = |job_id| gone.iter().any(|job| Some(job.id) == job_id);
    let ids = rows.into_iter().filter(|row| row.is_idle || is_lost(row.job_id));
    let ids: Vec<Uuid> = ids.map(|row| row.id).collect();
    put_on_queue(conn, webhook_id, &ids, now).await?;
    Ok(Page { n_replayed: ids.len(), last })
}

/// Sends a test event, which belongs to no task.
pub async fn send_test(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Delivery, Error> {
    require_enabled(&mut *conn, webhook_id).await?;
    let (id, kind) = (ids::new_at(now), "webhook.test");
    let body = json!({ "type": kind, "timestamp": now, "data": { "webhook_id": webhook_id } });
    let job_id = enqueue(&mut *conn, webhook_id, &[id]).await?.first().copied();
    sqlx::query!(
        "insert into dalsegno.webhook_deliveries (id, webhook_id, job_id, created_at, kind, state, body)
         values ($1, $2, $3, $4, $5, 'waiting', $6)",
        id,
        webhook_id,
        job_id,
        now,
        kind,
        body.to_string(),
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("store a test delivery"))?;
    get_delivery(conn, id).await
}

/// Gives up a delivery that this job sends. It can be replayed.
///
/// Comes before the cancellation of the job: the end of an attempt locks the delivery before its job.
pub async fn give_up(
    conn: &mut PgConnection,
    delivery_id: Uuid,
    job_id: i64,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.webhook_deliveries
            set state = 'failed', next_at = null, ended_at = $4,
                last_error = 'given up: ' || $3::text || coalesce('; last error: ' || last_error, '')
          where id = $1 and job_id = $2 and state = 'waiting'",
        delivery_id,
        job_id,
        reason,
        now,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("give up a delivery"))?;
    Ok(())
}

async fn require_enabled(conn: &mut PgConnection, webhook_id: Uuid) -> Result<(), Error> {
    match get(conn, webhook_id).await?.enabled {
        true => Ok(()),
        false => Err(Error::Disabled(webhook_id)),
    }
}

async fn put_on_queue(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let job_ids = enqueue(&mut *conn, webhook_id, ids).await?;
    sqlx::query!(
        "update dalsegno.webhook_deliveries as d
            set state = 'waiting', job_id = n.job_id, attempts = 0, next_at = $3, ended_at = null
           from unnest($1::uuid[], $2::bigint[]) as n (id, job_id)
          where d.id = n.id",
        ids,
        &job_ids,
        now,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("enqueue deliveries again"))?;
    Ok(())
}

/// Enqueues the jobs, in the order of the deliveries.
async fn enqueue(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<i64>, Error> {
    let options = Options {
        group_key: Some(webhook_id.to_string()),
        priority: Some(PRIORITY),
        ..Options::default()
    };
    let jobs = ids.iter().map(|id| (DeliverWebhook { delivery_id: *id }, options.clone()));
    let enqueued = queue::enqueue_many(conn, jobs).await?;
    Ok(enqueued.into_iter().map(|job| job.job_id).collect())
}
