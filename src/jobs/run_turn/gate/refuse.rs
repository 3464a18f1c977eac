//! Ends of a run whose turn does not begin: put off, failed with a reason, or cancelled.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgConnection;

use crate::{
    domain::{
        Amount, feed,
        tasks::{self, Task},
        text, turns,
    },
    jobs::{
        Services,
        run_turn::{
            error::{BeginRefusal, Error},
            gate::busy,
        },
    },
    queue::{End, HoldUntil, Run},
};

/// The state that was written for such a task.
enum RefusalState {
    PutOff { after: Duration, why: String },
    Failed { why: String },
}

const MAX_PAUSE: Duration = Duration::from_secs(60);
const CANCELLED: &str = "the task was cancelled before its turn started";
const CANCELLED_BETWEEN: &str = "the task was cancelled before its next turn started";

pub async fn refuse(
    run: &Run,
    services: &Services,
    task: &Task,
    refused: &BeginRefusal,
) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let written = match refused.again_after {
        Some(after) => postpone_task(&mut tx, services, task, refused, after).await,
        None => {
            let why = refused.why.clone();
            fail(&mut tx, services, task, refused).await.map(|()| RefusalState::Failed { why })
        }
    };
    match written {
        Ok(RefusalState::PutOff { after, why }) => {
            let until = HoldUntil::After(after);
            Ok(run.commit_snooze(tx, until, refused.cause, &why).await?)
        }
        Ok(RefusalState::Failed { why }) => {
            let end = run.commit_failure(tx, &why).await?;
            tracing::info!(
                job.id = run.job_id(),
                task.id = %task.id,
                code = refused.code(),
                error = why,
                "the task failed before its call"
            );
            Ok(end)
        }
        Err(error) => {
            tx.rollback().await.map_err(Error::undone)?;
            Err(error)
        }
    }
}

/// Ends a cancelled task with its job. Otherwise it would stay open until the sweep finds it.
pub async fn end_cancelled(run: &Run, services: &Services, task: &Task) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if let Err(error) = cancel(&mut tx, services, task).await {
        tx.rollback().await.map_err(Error::undone)?;
        return Err(error);
    }
    Ok(run.commit_cancelled(tx).await?)
}

async fn cancel(conn: &mut PgConnection, services: &Services, task: &Task) -> Result<(), Error> {
    let now = services.clock.now();
    // Read again, because this run may have begun a turn whose end was not written.
    let task = tasks::get(&mut *conn, task.id).await?;
    turns::clean_up(&mut *conn, task.without_turn(), now).await?;
    tasks::end(&mut *conn, task.id, tasks::End::Cancelled, Amount::ZERO, now).await?;
    let because = if task.turn.is_some() { CANCELLED_BETWEEN } else { CANCELLED };
    let event = task.event(feed::Kind::TaskCancelled, json!({ "because": because }));
    Ok(feed::append(conn, &[event], now).await?)
}

/// Puts a task off. Releases the reservation of a lost worker's turn: the refused begin released it, too, but was
/// rolled back. Two tasks that keep their reservations would refuse each other for ever.
async fn postpone_task(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &BeginRefusal,
    after: Duration,
) -> Result<RefusalState, Error> {
    let now = services.clock.now();
    if turns::interrupt_lost(&mut *conn, task.without_turn(), now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let n_waits = tasks::count_wait(&mut *conn, task.id).await?;
    let written = match refused.busy {
        Some(_) => wait_for_provider(&mut *conn, services, task, refused, after).await?,
        None => RefusalState::PutOff { after: pause(after, n_waits), why: refused.why.clone() },
    };
    if let (RefusalState::PutOff { why, .. }, 1) = (&written, n_waits) {
        let why = text::make_storable(why.clone());
        let event = task.event(feed::Kind::TaskWaiting, json!({ "because": why }));
        feed::append(conn, &[event], now).await?;
    }
    Ok(written)
}

/// Waits until the provider may be called again, and randomly a little longer, because other turns wait for the same
/// moment. A task that has waited too long fails.
async fn wait_for_provider(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &BeginRefusal,
    after: Duration,
) -> Result<RefusalState, Error> {
    let (config, now) = (&services.busy, services.clock.now());
    let after = after.mul_f64(rand::random_range(1.0..1.1));
    let until = now + TimeDelta::from_std(after).unwrap_or(TimeDelta::days(1));
    let since = tasks::wait_for_provider(&mut *conn, task.id, until, now).await?;
    if config.is_over(since, now) {
        let why = busy::describe_exceeded_wait(&refused.why, since);
        let refused = BeginRefusal::for_good(why.clone());
        fail(conn, services, task, &refused).await?;
        return Ok(RefusalState::Failed { why });
    }
    Ok(RefusalState::PutOff {
        after: busy::limit_wait(config, after, since, now),
        why: busy::with_end(config, &refused.why, since),
    })
}

/// Doubles the wait each time, because the runtime of the other turns is unknown.
fn pause(first: Duration, n_waits: u32) -> Duration {
    let doubled = first.saturating_mul(1 << n_waits.saturating_sub(1).min(16));
    doubled.min(MAX_PAUSE.max(first))
}

async fn fail(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &BeginRefusal,
) -> Result<(), Error> {
    let now = services.clock.now();
    let why = text::make_storable(refused.why.clone());
    // A worker that was lost in an earlier attempt may have left its turn running.
    turns::clean_up(&mut *conn, task.without_turn(), now).await?;
    let refusal = refused.budget.as_deref();
    let end = tasks::End::Failed { error: &why, refusal };
    tasks::end(&mut *conn, task.id, end, Amount::ZERO, now).await?;
    let kind = match refusal.is_some() {
        true => feed::Kind::BudgetRefused,
        false => feed::Kind::TaskFailed,
    };
    let event = feed::New {
        campaign_id: Some(task.campaign_id),
        task_id: Some(task.id),
        session_id: None,
        kind,
        data: json!({ "error": why }),
    };
    Ok(feed::append(conn, &[event], now).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute_and_are_never_shorter_than_requested() {
        let secs = |first, n_waits| pause(Duration::from_secs(first), n_waits).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 99].map(|n_waits| secs(5, n_waits)), [5, 10, 20, 40, 60, 60]);
        assert_eq!([secs(300, 1), secs(300, 2)], [300, 300]);
    }
}
