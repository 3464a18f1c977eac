//! Failover of a conversation to the agent's fallback, when its provider refuses calls for long.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;

use crate::{
    domain::{
        failovers::{self, Change, ProviderSide},
        feed, text,
    },
    jobs::{
        Services,
        run_turn::{
            error::{BeginRefusal, Error},
            load::{
                assignment::Assignment,
                failover::{Failover, of},
            },
        },
    },
    queue::Run,
};

/// Moves the conversation of a turn that cannot begin, if its provider refuses calls for long, or has refused enough in
/// a row.
pub async fn move_conversation(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    refused: BeginRefusal,
) -> Result<BeginRefusal, Error> {
    let (Some(failover), Some(pause), Some(busy)) =
        (&assignment.failover, refused.again_after, refused.busy)
    else {
        return Ok(refused);
    };
    let is_long = failover.is_long(pause) || busy.refusals >= failover.rules.after;
    if failover.side == ProviderSide::Fallback || !is_long {
        return Ok(refused);
    }
    let now = services.clock.now();
    let change = failover.rules.change_after_failure(failover.standing, failover.side, true, now);
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let why = Some(refused.why.clone());
    write(&mut tx, assignment, failover, change, why, now).await?;
    tx.commit().await.map_err(Error::undone)?;
    // The wait is over: the turn is tried on the fallback at once.
    Ok(BeginRefusal { again_after: Some(Duration::ZERO), busy: None, ..refused })
}

pub async fn write(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    failover: &Failover,
    change: Change,
    why: Option<String>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let task = &assignment.task;
    match change.standing {
        Some(standing) if Some(standing) != failover.standing => {
            failovers::put(&mut *conn, of(task), standing, now).await?;
        }
        None if failover.standing.is_some() => failovers::delete(&mut *conn, of(task)).await?,
        _ => {}
    }
    if let Some(side) = change.moved_to {
        let data = json!({
            "to": side,
            "from_provider": assignment.route.provider_name,
            "because": why.map(text::make_storable),
            "tried_again_after_secs": (side == ProviderSide::Fallback).then(|| failover.rules.rest.num_seconds()),
        });
        feed::append(conn, &[task.event(feed::Kind::ConversationMoved, data)], now).await?;
    }
    Ok(())
}
