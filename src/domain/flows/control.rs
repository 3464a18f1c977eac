//! Pausing, resuming and cancelling a flow.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{CancelledFlow, Error, Flow, get};
use crate::domain::{
    StatementError, feed,
    tasks::{self, CancelOutcome, Cancellation, DescendantCounts},
};

/// Pauses a flow: no more of its tasks begin. Tasks that have begun go on.
pub async fn pause(conn: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> Result<Flow, Error> {
    let flow = get(&mut *conn, id).await?;
    if flow.open == 0 {
        return Err(Error::Ended(id));
    }
    let is_new = sqlx::query_scalar!(r#"select dalsegno.pause_flow($1, $2) as "is_new!""#, id, now)
        .fetch_one(&mut *conn)
        .await
        .map_err(StatementError::to("pause a flow"))?;
    match is_new {
        true => append_event(conn, id, feed::Kind::FlowPaused, now).await,
        false => Err(Error::Paused(id)),
    }
}

pub async fn resume(conn: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> Result<Flow, Error> {
    get(&mut *conn, id).await?;
    let was_paused = sqlx::query_scalar!(r#"select dalsegno.resume_flow($1) as "was_paused!""#, id)
        .fetch_one(&mut *conn)
        .await
        .map_err(StatementError::to("resume a flow"))?;
    match was_paused {
        true => append_event(conn, id, feed::Kind::FlowResumed, now).await,
        false => Err(Error::NotPaused(id)),
    }
}

/// Returns true if the flow is paused, and keeps it paused until the end of the transaction.
pub async fn hold_pause(executor: impl PgExecutor<'_>, id: Uuid) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.flows where id = $1 and paused_at is not null for share",
        id,
    )
    .fetch_optional(executor)
    .await
    .map(|found| found.is_some())
    .map_err(StatementError::to("find the pause of a flow"))
}

/// Cancels all tasks of a flow that have not ended. Waiting ones come first, so that no end of another starts them.
pub async fn cancel(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<CancelledFlow, Error> {
    lock(&mut *conn, id).await?;
    if get(&mut *conn, id).await?.open == 0 {
        return Err(Error::Ended(id));
    }
    let why = format!("{reason} (with its flow {id})");
    let (mut cancel, mut had_ended) = (DescendantCounts::default(), 0);
    for task in tasks::of_flow(&mut *conn, id).await?.iter().rev() {
        let cancellation = cancel_task(&mut *conn, task.id, &why, now).await?;
        had_ended +=
            i64::from(cancellation.is_none_or(|one| one.cancel == CancelOutcome::HadEnded));
        cancellation.into_iter().for_each(|one| cancel.add(one));
    }
    Ok(CancelledFlow { flow: get(conn, id).await?, cancel, had_ended })
}

/// Reads the flow, and writes the event of its change.
async fn append_event(
    conn: &mut PgConnection,
    id: Uuid,
    kind: feed::Kind,
    now: DateTime<Utc>,
) -> Result<Flow, Error> {
    let flow = get(&mut *conn, id).await?;
    feed::append(conn, &[flow.event(kind, json!({}))], now).await?;
    Ok(flow)
}

/// Cancels a task. `None`: the task and all that depend on it had ended already.
pub(super) async fn cancel_task(
    conn: &mut PgConnection,
    id: Uuid,
    why: &str,
    now: DateTime<Utc>,
) -> Result<Option<Cancellation>, Error> {
    match tasks::cancel(conn, id, why, now).await {
        Ok(cancellation) => Ok(Some(cancellation)),
        Err(tasks::Error::Ended { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Locks a flow against other changes. A change then locks its tasks, each with its job, and the lock of the flow's end only at the
/// commit. This is the order of every transaction that ends a task.
pub(super) async fn lock(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("select id from dalsegno.flows where id = $1 for no key update", id)
        .fetch_optional(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("lock a flow"))
}

/// Erases the inputs of a campaign's flows. The results of their tasks stay.
pub async fn erase_inputs(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<i64, StatementError> {
    sqlx::query!("update dalsegno.flows set inputs = '{}' where campaign_id = $1", campaign_id)
        .execute(executor)
        .await
        .map(|done| i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
        .map_err(StatementError::to("erase the inputs of flows"))
}
