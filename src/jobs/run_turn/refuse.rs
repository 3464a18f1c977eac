//! A task whose turn does not begin: put off, or failed with the reason.

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

pub(super) async fn refuse(
    run: &Run,
    services: &Services,
    task: &Task,
    refused: &Refused,
) -> Result<End, Error> {
    if let Some(after) = refused.again_after {
        return Ok(End::Snooze { until: Until::After(after), reason: refused.why.clone() });
    }
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if let Err(error) = write(&mut tx, services, task, refused).await {
        tx.rollback().await.map_err(Error::undone)?;
        return Err(error);
    }
    Ok(run.commit_failure(tx, &refused.why).await?)
}

async fn write(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    refused: &Refused,
) -> Result<(), Error> {
    let now = services.clock.now();
    let why = text::storable(refused.why.clone());
    // A worker that was lost in an earlier attempt may have left its turn running.
    turns::interrupt_lost(&mut *conn, task, now).await?;
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
