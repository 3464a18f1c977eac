//! A task whose agent is paused: it waits for a person, and no worker looks at it again before that.

use serde_json::json;
use sqlx::PgConnection;

use super::Error;
use crate::{
    domain::{
        Amount, agent_pauses, feed,
        tasks::{self, Task},
        text, turns,
    },
    jobs::Services,
    queue::{End, Run},
};

/// `None`: the pause has ended since it was seen, and the turn may begin.
pub(super) async fn wait(
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

/// What the job is held for.
async fn write(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
) -> Result<Option<String>, Error> {
    let now = services.clock.now();
    let held = agent_pauses::hold(&mut *conn, task.campaign_id, &task.agent).await?;
    let Some(pause) = held else { return Ok(None) };
    // What a lost worker's turn had set aside is given back now: nobody knows when the next turn begins.
    if turns::interrupt_lost(&mut *conn, task, now).await? {
        tasks::end(&mut *conn, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    let words = pause.words();
    let because = json!({ "because": text::storable(words.clone()) });
    feed::append(conn, &[task.event(feed::Kind::TaskWaiting, because)], now).await?;
    Ok(Some(words))
}
