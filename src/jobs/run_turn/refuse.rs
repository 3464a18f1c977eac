//! A task whose turn does not begin: put off, failed with the reason, or cancelled before.

use std::time::Duration;

use serde_json::json;
use sqlx::PgConnection;

use super::{Error, Refused};
use crate::{
    domain::{
        Amount, feed,
        tasks::{self, Task},
        text, turns,
    },
    jobs::Services,
    queue::{End, Run, Until},
};

const MOST_PAUSE: Duration = Duration::from_secs(60);
const CANCELLED: &str = "the task was cancelled before its turn could begin";
const CANCELLED_BETWEEN: &str = "the task was cancelled before another of its turns could begin";

pub(super) async fn refuse(
    run: &Run,
    services: &Services,
    task: &Task,
    refused: &Refused,
) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let written = match refused.again_after {
        Some(after) => put_off(&mut tx, services, task, refused, after).await.map(Some),
        None => fail(&mut tx, services, task, refused).await.map(|()| None),
    };
    match written {
        Ok(Some(after)) => Ok(run.commit_snooze(tx, Until::After(after), &refused.why).await?),
        Ok(None) => Ok(run.commit_failure(tx, &refused.why).await?),
        Err(error) => {
            tx.rollback().await.map_err(Error::undone)?;
            Err(error)
        }
    }
}

/// Ends a task with its job, because nobody else would before the sweep finds it.
pub(super) async fn cancelled(run: &Run, services: &Services, task: &Task) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if let Err(error) = cancel(&mut tx, services, task).await {
        tx.rollback().await.map_err(Error::undone)?;
        return Err(error);
    }
    Ok(run.commit_cancelled(tx).await?)
}

async fn cancel(conn: &mut PgConnection, services: &Services, task: &Task) -> Result<(), Error> {
    let now = services.clock.now();
    // As it is now: this run may have begun a turn whose end was not written.
    let task = tasks::get(&mut *conn, task.id).await?;
    turns::clear_up(&mut *conn, &task, now).await?;
    tasks::end(&mut *conn, task.id, tasks::End::Cancelled, Amount::ZERO, now).await?;
    let because = if task.turn.is_some() { CANCELLED_BETWEEN } else { CANCELLED };
    let event = task.event(feed::Kind::TaskCancelled, json!({ "because": because }));
    Ok(feed::append(conn, &[event], now).await?)
}

/// What a lost worker's turn had set aside is given back now: the beginning that was refused had given it back too, but
/// was rolled back. Two tasks that both kept their shares would refuse each other for ever.
async fn put_off(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &Refused,
    after: Duration,
) -> Result<Duration, Error> {
    let now = services.clock.now();
    if turns::interrupt_lost(&mut *conn, task, now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let n_waits = tasks::wait_longer(&mut *conn, task.id).await?;
    if n_waits == 1 {
        let why = text::storable(refused.why.clone());
        let event = task.event(feed::Kind::TaskWaiting, json!({ "because": why }));
        feed::append(conn, &[event], now).await?;
    }
    Ok(pause(after, n_waits))
}

/// Twice as long each time, because nobody knows how long the others run.
fn pause(first: Duration, n_waits: u32) -> Duration {
    let doubled = first.saturating_mul(1 << n_waits.saturating_sub(1).min(16));
    doubled.min(MOST_PAUSE.max(first))
}

async fn fail(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &Refused,
) -> Result<(), Error> {
    let now = services.clock.now();
    let why = text::storable(refused.why.clone());
    // A worker that was lost in an earlier attempt may have left its turn running.
    turns::clear_up(&mut *conn, task, now).await?;
    tasks::end(&mut *conn, task.id, tasks::End::Failed { error: &why }, Amount::ZERO, now).await?;
    let kind = match refused.budget {
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
    fn pauses_grow_up_to_a_minute_and_are_never_shorter_than_asked_for() {
        let secs = |first, n_waits| pause(Duration::from_secs(first), n_waits).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 99].map(|n_waits| secs(5, n_waits)), [5, 10, 20, 40, 60, 60]);
        assert_eq!([secs(300, 1), secs(300, 2)], [300, 300]);
    }
}
