//! Tasks whose call has no share of a rate limit. They wait until a lease serves them, and no worker looks at them before.
//!
//! The job keeps its place: later tasks of the conversation wait behind it, those of other conversations go on.

use std::time::Duration;

use serde_json::json;
use sqlx::PgConnection;

use crate::{
    domain::{
        Amount, feed,
        rate_limits::{self, NewWait},
        tasks::{self, Task},
        text, turns,
    },
    jobs::{
        Services,
        rate_limits::LimitRefusal,
        run_turn::{error::Error, gate::budget::never},
    },
    queue::{End, HoldUntil, Run, WaitCause},
};

/// Returns true if the turn may begin again: a lease has brought the missing share. Behind other waiting tasks it makes none.
pub async fn has_space_now(
    run: &Run,
    services: &Services,
    refusal: &LimitRefusal,
) -> Result<bool, Error> {
    if refusal.is_awaited {
        return Ok(false);
    }
    services.rate_limits.renew(run.pool(), &*services.clock).await?;
    Ok(services.rate_limits.has_space(refusal))
}

/// Puts off a task until a lease serves it.
pub async fn wait_for_limit(
    run: &Run,
    services: &Services,
    task: &Task,
    refusal: &LimitRefusal,
) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    match write(&mut tx, run.job_id(), services, task, refusal).await {
        Ok(until) => {
            let cause = Some(WaitCause::Limit);
            Ok(run.commit_snooze(tx, until, cause, &refusal.describe()).await?)
        }
        Err(error) => {
            tx.rollback().await.map_err(Error::undone)?;
            Err(error)
        }
    }
}

async fn write(
    conn: &mut PgConnection,
    job_id: i64,
    services: &Services,
    task: &Task,
    refusal: &LimitRefusal,
) -> Result<HoldUntil, Error> {
    let now = services.clock.now();
    // Releases the reservation of a lost worker's turn now: the wait may be long.
    if turns::interrupt_lost(&mut *conn, task.without_turn(), now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let n_waits = tasks::count_wait(&mut *conn, task.id).await?;
    // A soft interrupt is either seen here, or waits for the lock on the task and finds that it does not run any more.
    if tasks::is_asked_to_stop(&mut *conn, task.id).await? {
        return Ok(HoldUntil::After(Duration::ZERO));
    }
    let keys: Vec<String> = refusal.limits.iter().map(|limit| limit.key.clone()).collect();
    let wait = NewWait {
        task_id: task.id,
        job_id,
        campaign_id: task.campaign_id,
        keys: &keys,
        amounts: &refusal.amounts,
        key: &keys[refusal.at],
    };
    rate_limits::wait(&mut *conn, wait, now).await?;
    if n_waits == 1 {
        let because = text::make_storable(refusal.describe());
        let event = task.event(feed::Kind::TaskWaiting, json!({ "because": because }));
        feed::append(conn, &[event], now).await?;
    }
    Ok(HoldUntil::At(never()))
}
