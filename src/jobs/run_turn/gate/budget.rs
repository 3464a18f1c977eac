//! Tasks whose call a budget refuses. They wait until the budget has space, and no worker looks at them before.
//!
//! The job keeps its place: later tasks of the conversation wait behind it, those of other conversations go on.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::json;
use sqlx::PgConnection;
use std::time::Duration;

use crate::{
    domain::{
        Amount,
        amount::Refusal,
        budgets, feed,
        tasks::{self, Task},
        text, turns,
    },
    jobs::{Services, run_turn::error::Error},
    queue::{End, HoldUntil, Run, WaitCause},
};

/// Puts off a task whose first call a budget has refused.
pub async fn wait_for_budget(
    run: &Run,
    services: &Services,
    task: &Task,
    refusal: &Refusal,
) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    match write(&mut tx, run.job_id(), services, task, refusal).await {
        Ok(until) => {
            let (cause, why) = (Some(WaitCause::Limit), refusal.describe_wait());
            Ok(run.commit_snooze(tx, until, cause, &why).await?)
        }
        Err(error) => {
            tx.rollback().await.map_err(Error::undone)?;
            Err(error)
        }
    }
}

/// Begins the wait of a task, whose job is put off in the same transaction until the returned moment. The caller has locked the task, so
/// that a soft interrupt is either seen here, or waits and finds that the task does not run any more. `None`: it was seen.
pub async fn begin_wait(
    conn: &mut PgConnection,
    task: &Task,
    job_id: i64,
    refusal: &Refusal,
    now: DateTime<Utc>,
) -> Result<Option<HoldUntil>, Error> {
    if tasks::is_asked_to_stop(&mut *conn, task.id).await? {
        return Ok(None);
    }
    Ok(Some(match budgets::wait(conn, (task.id, job_id), refusal, now).await? {
        true => HoldUntil::At(never()),
        // Another turn has released a reservation meanwhile.
        false => HoldUntil::After(Duration::ZERO),
    }))
}

async fn write(
    conn: &mut PgConnection,
    job_id: i64,
    services: &Services,
    task: &Task,
    refusal: &Refusal,
) -> Result<HoldUntil, Error> {
    let now = services.clock.now();
    // Releases the reservation of a lost worker's turn: two tasks that keep theirs would wait for each other.
    if turns::interrupt_lost(&mut *conn, task.without_turn(), now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let n_waits = tasks::count_wait(&mut *conn, task.id).await?;
    let Some(until) = begin_wait(&mut *conn, task, job_id, refusal, now).await? else {
        return Ok(HoldUntil::After(Duration::ZERO));
    };
    if n_waits == 1 {
        let because = text::make_storable(refusal.describe_wait());
        let event = task.event(feed::Kind::TaskWaiting, json!({ "because": because }));
        feed::append(conn, &[event], now).await?;
    }
    Ok(until)
}

/// Returns the moment of `dalsegno.never()`: the job waits until `dalsegno.end_snooze()` is called.
pub fn never() -> DateTime<Utc> {
    let day = NaiveDate::from_ymd_opt(9999, 12, 31).unwrap_or(NaiveDate::MAX);
    day.and_time(chrono::NaiveTime::MIN).and_utc()
}
