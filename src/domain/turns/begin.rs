//! The transaction before the provider is called.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::domain::{
    Amount, Failed, campaigns,
    messages::{self, New},
    sessions::{self, Live, Minted},
    tasks,
};

#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    pub session: &'a Live,
    pub task_id: Uuid,
    pub job_id: i64,
    pub lease: i64,
    /// Counts the attempts of the job.
    pub attempt: i16,
    /// The most that the turn may cost.
    pub reserve: Amount,
    /// For a provider that keeps the conversation itself.
    pub minted: Option<Minted<'a>>,
    /// The prompt under the id of its task, after notices if there are any. A prompt that an earlier attempt has
    /// written is not written again.
    pub messages: &'a [New],
    pub now: DateTime<Utc>,
}

/// A turn that runs. Its end needs all of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub task_id: Uuid,
    pub turn: i32,
    pub lease: i64,
    pub reserved: Amount,
    pub ephemeral: bool,
}

/// Begins a turn: the session runs, the prompt is in the transcript, the budget is set aside. All or nothing: after an
/// error the caller rolls back.
pub async fn begin(conn: &mut PgConnection, begin: &Begin<'_>) -> Result<Begun, Error> {
    let Begin { session, task_id, lease, reserve, now, .. } = *begin;
    let n_messages = i64::try_from(begin.messages.len()).unwrap_or(i64::MAX);
    let entered =
        sessions::enter(&mut *conn, session.id, lease, n_messages, begin.minted, now).await?;
    let (turn, first_seq) = (entered.turn, entered.first_seq);
    messages::append(&mut *conn, session.id, turn, first_seq, begin.messages, now).await?;
    insert(&mut *conn, begin, turn).await?;
    tasks::start(&mut *conn, task_id, session.id, turn, reserve, now).await?;
    if !reserve.is_zero() {
        campaigns::reserve(&mut *conn, session.campaign_id, reserve).await?;
    }
    Ok(Begun {
        session_id: session.id,
        campaign_id: session.campaign_id,
        task_id,
        turn,
        lease,
        reserved: reserve,
        ephemeral: session.ephemeral,
    })
}

async fn insert(conn: &mut PgConnection, begin: &Begin<'_>, turn: i32) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.turns (session_id, number, task_id, attempt, job_id, lease, reserved_micros, reserved_tokens, started_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        begin.session.id,
        turn,
        begin.task_id,
        begin.attempt,
        begin.job_id,
        begin.lease,
        begin.reserve.micros,
        begin.reserve.tokens,
        begin.now,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(Failed::to("begin a turn"))
}
