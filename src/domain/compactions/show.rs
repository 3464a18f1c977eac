//! Applying and undoing compactions: changes of the view that a session shows.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{ApplyOutcome, Compaction, Error, Outcome, get};
use crate::domain::{
    StatementError, facts,
    feed::{self, Kind},
    sessions::{self, SessionRow},
};

/// The result of applying the newest prepared compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowOutcome {
    Applied(Box<Compaction>),
    /// No prepared compaction continues the current view.
    Stale,
}

/// Applies the newest prepared compaction that continues the session's view. Other prepared ones become stale.
pub async fn apply_newest(
    conn: &mut PgConnection,
    session_id: Uuid,
    now: DateTime<Utc>,
) -> Result<ShowOutcome, Error> {
    let session = open(&mut *conn, session_id).await?;
    let Some(generation) = newest_prepared(&mut *conn, session_id, session.generation).await?
    else {
        return Ok(ShowOutcome::Stale);
    };
    if apply(&mut *conn, session_id, generation, now).await? == ApplyOutcome::Stale {
        return Ok(ShowOutcome::Stale);
    }
    mark_others_stale(&mut *conn, session_id).await?;
    let applied = get(&mut *conn, session_id, generation)
        .await?
        .ok_or(Error::Unknown { session_id, generation })?;
    append_event(&mut *conn, &session, &applied, now).await?;
    facts::request(&mut *conn, session.campaign_id, session_id).await?;
    Ok(ShowOutcome::Applied(Box::new(applied)))
}

/// Applies a prepared compaction, if the session still shows the view that it was made from. Otherwise it becomes stale.
pub async fn apply(
    conn: &mut PgConnection,
    session_id: Uuid,
    generation: i32,
    now: DateTime<Utc>,
) -> Result<ApplyOutcome, Error> {
    let unknown = || Error::Unknown { session_id, generation };
    let prepared = get(&mut *conn, session_id, generation).await?.ok_or_else(unknown)?;
    if prepared.outcome != Outcome::Prepared {
        return Err(unknown());
    }
    let shown =
        sessions::show_generation(&mut *conn, session_id, prepared.parent, generation).await?;
    let (outcome, applied_at) =
        if shown { (Outcome::Applied, Some(now)) } else { (Outcome::Stale, None) };
    sqlx::query!(
        "update dalsegno.compactions set outcome = $3, applied_at = $4 where session_id = $1 and generation = $2",
        session_id,
        generation,
        outcome as Outcome,
        applied_at,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("apply a compaction"))?;
    Ok(if shown { ApplyOutcome::Shown } else { ApplyOutcome::Stale })
}

/// Goes back to the view before the compaction that is shown, and returns its generation. A caller that acts for a person writes the event
/// to the feed.
pub async fn undo(
    conn: &mut PgConnection,
    session_id: Uuid,
    now: DateTime<Utc>,
) -> Result<i32, Error> {
    let session = open(&mut *conn, session_id).await?;
    let generation = session.generation;
    if generation == 0 {
        return Err(Error::NothingToUndo(session_id));
    }
    let undone = sqlx::query_scalar!(
        "update dalsegno.compactions set undone_at = $3
          where session_id = $1 and generation = $2 and cause <> 'inherited' returning parent",
        session_id,
        generation,
        now,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("undo a compaction"))?;
    // An inherited summary cannot be undone: its messages are in the predecessor's transcript.
    let parent = undone.ok_or(Error::NothingToUndo(session_id))?;
    sessions::show_generation(&mut *conn, session_id, generation, parent).await?;
    // Compactions prepared from another view must not be applied when that view returns: a person has just undone one.
    mark_others_stale(&mut *conn, session_id).await?;
    Ok(parent)
}

/// Finds the newest prepared compaction that continues the view of generation `shown`.
pub async fn newest_prepared(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    shown: i32,
) -> Result<Option<i32>, StatementError> {
    sqlx::query_scalar!(
        "select generation from dalsegno.compactions
          where session_id = $1 and parent = $2 and outcome = 'prepared' order by generation desc limit 1",
        session_id,
        shown,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find a prepared compaction"))
}

async fn open(conn: &mut PgConnection, session_id: Uuid) -> Result<SessionRow, Error> {
    let session = sessions::lock(conn, session_id).await?;
    match session.state {
        sessions::State::Closed => Err(sessions::Error::Closed(session_id).into()),
        _ => Ok(session),
    }
}

async fn mark_others_stale(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.compactions set outcome = 'stale' where session_id = $1 and outcome = 'prepared'",
        session_id,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("discard a prepared compaction"))
}

async fn append_event(
    executor: impl PgExecutor<'_>,
    session: &SessionRow,
    compaction: &Compaction,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let event = feed::New {
        campaign_id: Some(session.campaign_id),
        task_id: None,
        session_id: Some(session.id),
        kind: Kind::SessionCompacted,
        data: json!({
            "generation": compaction.generation,
            "parent": compaction.parent,
            "cause": compaction.cause,
            "rung": compaction.rung,
            "tokens_before": compaction.tokens_before,
            "tokens_after": compaction.tokens_after,
            "prompts": compaction.kept_prompts(),
        }),
    };
    feed::append(executor, &[event], now).await
}
