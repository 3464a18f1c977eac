//! Opening and closing sessions.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Reason, SessionRow, State, lock, select_live};
use crate::domain::StatementError;

/// A session to open.
#[derive(Clone, Copy)]
pub struct NewSession<'a> {
    pub campaign_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    /// SHA-256 of the agent's prompt, in hex.
    pub prompt_hash: &'a str,
    /// `None`: a person opens it.
    pub task_id: Option<Uuid>,
    /// Fresh random bytes. Used only if a session is opened.
    pub fence_seed: [u8; 32],
    pub expires_at: DateTime<Utc>,
    pub now: DateTime<Utc>,
}

/// The link of a new session to the one that it continues.
#[derive(Clone, Copy)]
pub struct Continuation<'a> {
    pub origin: Origin,
    /// The position to continue from, if a part of the conversation is inherited.
    pub goes_on: Option<Position>,
    pub takes_summary: bool,
    /// The session before it whose token calibration is inherited.
    pub learnt_by: Option<&'a SessionRow>,
}

/// The session that a new one continues.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// The new session takes its place, for this reason.
    Predecessor { id: Uuid, because: Reason },
    /// The new session begins as this one was after a turn. Both go on.
    Fork(ForkPoint),
}

/// The end of a turn, where a fork begins.
#[derive(Debug, Clone, Copy)]
pub struct ForkPoint {
    pub parent_id: Uuid,
    pub turn: i32,
    /// Tokens of the window that the last call of the turn occupied. More than 0, so that the fork counts as a conversation that has
    /// answered.
    pub context_tokens: i64,
}

/// The position that a conversation has reached. A successor that continues there keeps counting and does not read old posts again. It
/// begins as interrupted if the last turn was.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    pub last_seq: i64,
    pub turn_count: i32,
    pub board_cursor: i64,
    pub interrupted: bool,
}

impl Position {
    pub fn of(session: &SessionRow) -> Self {
        Self {
            last_seq: session.last_seq,
            turn_count: session.turn_count,
            board_cursor: session.board_cursor,
            interrupted: session.state == State::Interrupted,
        }
    }
}

/// Finds the open session of a conversation and locks it.
pub async fn find_open(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
) -> Result<Option<SessionRow>, Error> {
    select_live!(
        "campaign_id = $1 and agent_type = $2 and instance = $3 and closed_at is null and not ephemeral for no key update",
        campaign_id,
        agent,
        instance,
    )
    .fetch_optional(conn)
    .await
    .map_err(|source| StatementError { action: "find the open session", source }.into())
}

/// Finds the ephemeral session that an earlier attempt of the task has made, and locks it.
pub async fn find_ephemeral(
    conn: &mut PgConnection,
    task_id: Uuid,
) -> Result<Option<SessionRow>, Error> {
    let id = sqlx::query_scalar!(
        "select id from dalsegno.sessions where opened_by_task = $1 and ephemeral and closed_at is null",
        task_id,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("find the session of a task"))?;
    match id {
        Some(id) => lock(conn, id).await.map(Some),
        None => Ok(None),
    }
}

/// Opens a session for the run of `lease`, so that an older run cannot begin a turn in it; without one, any run may. If another run opens
/// the same conversation at the same time, that one wins, and this run gets [`Error::Overtaken`].
pub async fn open(
    conn: &mut PgConnection,
    id: Uuid,
    opening: &NewSession<'_>,
    lease: Option<i64>,
    ephemeral: bool,
    continues: Option<Continuation<'_>>,
) -> Result<SessionRow, Error> {
    let goes_on = continues.and_then(|before| before.goes_on);
    let (predecessor, fork) = match continues.map(|before| before.origin) {
        Some(Origin::Predecessor { id, because }) => (Some((id, because)), None),
        Some(Origin::Fork(point)) => (None, Some(point)),
        None => (None, None),
    };
    let same_model = continues
        .and_then(|before| before.learnt_by)
        .filter(|before| before.provider == opening.provider && before.model == opening.model);
    // The breaker counts attempts by turn number. Only a successor with memory continues these numbers; a fork goes back.
    let breaker = same_model.filter(|_| goes_on.is_some() && fork.is_none());
    let generation = i32::from(continues.is_some_and(|before| before.takes_summary));
    // The row keeps the interruption until a turn begins, because this run may end before that.
    let state = match goes_on {
        Some(position) if position.interrupted => State::Interrupted,
        _ => State::Idle,
    };
    let opened = sqlx::query!(
        "insert into dalsegno.sessions
                (id, campaign_id, agent_type, instance, provider, model, prompt_hash, opened_by_task, opened_because, fence_seed,
                 expires_at, created_at, used_at, ephemeral, predecessor_id, last_seq, turn_count, board_cursor, generation,
                 last_generation, calibration, compaction_breaker, state, lease, forked_from_session, forked_at_turn, context_tokens)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14, $15, $16, $17, $18, $18, $19, $20, $21, $22, $23, $24, $25)
         on conflict (campaign_id, agent_type, instance) where closed_at is null and not ephemeral do nothing",
        id,
        opening.campaign_id,
        opening.agent,
        opening.instance,
        opening.provider,
        opening.model,
        opening.prompt_hash,
        opening.task_id,
        predecessor.map_or(Reason::New, |(_, because)| because) as Reason,
        opening.fence_seed.as_slice(),
        opening.expires_at,
        opening.now,
        ephemeral,
        predecessor.map(|(id, _)| id),
        goes_on.map_or(0, |position| position.last_seq),
        goes_on.map_or(0, |position| position.turn_count),
        goes_on.map_or(0, |position| position.board_cursor),
        generation,
        same_model.and_then(|before| before.calibration.clone()),
        breaker.and_then(|before| before.compaction_breaker.clone()),
        state as State,
        lease,
        fork.map(|point| point.parent_id),
        fork.map(|point| point.turn),
        fork.map_or(0, |point| point.context_tokens),
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("open a session"))?;
    match opened.rows_affected() {
        1 => lock(conn, id).await,
        _ => Err(Error::Overtaken(id)),
    }
}

/// Closes a session without a running turn. Returns an error if there is none.
pub async fn close(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    because: Reason,
    successor_id: Option<Uuid>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let closed = sqlx::query!(
        "update dalsegno.sessions set state = 'closed', closed_at = $3, closed_because = $2, successor_id = $4
          where id = $1 and closed_at is null and running_turn is null",
        id,
        because as Reason,
        now,
        successor_id,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("close a session"))?;
    if closed.rows_affected() == 1 { Ok(()) } else { Err(Error::Overtaken(id)) }
}

/// Closes the ephemeral session of a task, if it has one without a running turn. Returns its id.
pub async fn close_ephemeral(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "update dalsegno.sessions set state = 'closed', closed_at = $2, closed_because = 'ended'
          where opened_by_task = $1 and ephemeral and closed_at is null and running_turn is null returning id",
        task_id,
        now,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("close the session of a task"))
}

/// Requests a rebuild by the next task. A running turn is not disturbed. Returns an error if the session is closed.
///
/// The first reason stays, except that `Fresh` replaces it: a request to drop the memory must win.
pub async fn ask_rebuild(conn: &mut PgConnection, id: Uuid, because: Reason) -> Result<(), Error> {
    match ask_rebuild_all(&mut *conn, &[id], because).await?.as_slice() {
        [_] => Ok(()),
        _ => lock(conn, id).await.and_then(|_| Err(Error::Closed(id))),
    }
}

/// Requests a rebuild of several sessions. Returns those that are open.
pub async fn ask_rebuild_all(
    conn: &mut PgConnection,
    ids: &[Uuid],
    because: Reason,
) -> Result<Vec<Uuid>, StatementError> {
    // Locks in the order of ids, so that two concurrent requests cannot deadlock.
    sqlx::query_scalar!(
        "with open as (select id from dalsegno.sessions where id = any($1) and closed_at is null order by id for update)
         update dalsegno.sessions as s
            set rebuild_because = case when $2 = 'fresh' then $2 else coalesce(s.rebuild_because, $2) end
           from open where s.id = open.id and s.closed_at is null returning s.id",
        ids,
        because as Reason,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("mark sessions for a rebuild"))
}
