//! Tasks whose agent or flow is paused. They wait for a person, and no worker looks at them before.
//!
//! The job of a paused agent is held in its place, because all of the agent's conversation waits. A step of a paused
//! flow is put aside, because the conversation continues with other tasks.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        Amount, agent_pauses, feed, flows,
        tasks::{self, Task},
        text, turns,
    },
    jobs::{Services, run_turn::error::Error},
    queue::{End, Run},
};

/// Holds the job of a paused agent. `None`: the pause has ended meanwhile, and the turn may begin.
pub async fn hold_for_pause(
    run: &Run,
    services: &Services,
    task: &Task,
) -> Result<Option<End>, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    match write(&mut tx, services, task).await {
        Ok(Some(words)) => Ok(Some(run.commit_held(tx, &words).await?)),
        nothing => {
            tx.rollback().await.map_err(Error::undone)?;
            nothing.map(|_| None)
        }
    }
}

/// Puts a step of a paused flow aside. `None`: the flow was resumed meanwhile, and the turn may begin.
pub async fn wait_for_flow(
    run: &Run,
    services: &Services,
    task: &Task,
    flow_id: Uuid,
) -> Result<Option<End>, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    match write_for_flow(&mut tx, services, task, flow_id).await {
        Ok(Some(words)) => Ok(Some(run.commit_signal_wait(tx, &words).await?)),
        nothing => {
            tx.rollback().await.map_err(Error::undone)?;
            nothing.map(|_| None)
        }
    }
}

/// Returns the reason for which the job is put aside.
async fn write_for_flow(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
    flow_id: Uuid,
) -> Result<Option<String>, Error> {
    if !flows::hold_pause(&mut *conn, flow_id).await? {
        return Ok(None);
    }
    tasks::wait_for_flow(&mut *conn, task.id).await?;
    let words = format!("its flow {flow_id} is paused");
    let because = json!({ "because": words });
    let event = task.event(feed::Kind::TaskWaiting, because);
    feed::append(conn, &[event], services.clock.now()).await?;
    Ok(Some(words))
}

/// Returns the reason for which the job is held.
async fn write(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
) -> Result<Option<String>, Error> {
    let now = services.clock.now();
    let held = agent_pauses::lock_pause(&mut *conn, task.campaign_id, &task.agent).await?;
    let Some(pause) = held else { return Ok(None) };
    // Releases the reservation of a lost worker's turn now: the pause may be long.
    if turns::interrupt_lost(&mut *conn, task.without_turn(), now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let because = json!({ "because": text::make_storable(pause.describe()) });
    feed::append(conn, &[task.event(feed::Kind::TaskWaiting, because)], now).await?;
    Ok(Some(pause.hold_reason()))
}
