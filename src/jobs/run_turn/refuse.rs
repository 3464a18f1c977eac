//! A task whose turn does not begin: put off, failed with the reason, or cancelled before.

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

const CANCELLED: &str = "the task was cancelled before its turn could begin";

pub(super) async fn refuse(
    run: &Run,
    services: &Services,
    task: &Task,
    refused: &Refused,
) -> Result<End, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let written = match refused.again_after {
        Some(_) => put_off(&mut tx, services, task).await,
        None => fail(&mut tx, services, task, refused).await,
    };
    if let Err(error) = written {
        tx.rollback().await.map_err(Error::undone)?;
        return Err(error);
    }
    Ok(match refused.again_after {
        Some(after) => run.commit_snooze(tx, Until::After(after), &refused.why).await?,
        None => run.commit_failure(tx, &refused.why).await?,
    })
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
    turns::clear_up(&mut *conn, task, now).await?;
    tasks::end(&mut *conn, task.id, tasks::End::Cancelled, Amount::ZERO, now).await?;
    let event = task.event(feed::Kind::TaskCancelled, json!({ "because": CANCELLED }));
    Ok(feed::append(conn, &[event], now).await?)
}

/// What a lost worker's turn had set aside is given back now: the beginning that was refused had given it back too, but
/// was rolled back. Two tasks that both kept their shares would refuse each other for ever.
async fn put_off(conn: &mut PgConnection, services: &Services, task: &Task) -> Result<(), Error> {
    let now = services.clock.now();
    if turns::interrupt_lost(&mut *conn, task, now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    Ok(())
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
