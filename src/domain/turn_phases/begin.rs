//! The transaction before the provider is called.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::Error;
use crate::domain::{
    Amount, Failed,
    amount::{Limit, Owner},
    campaigns, feed,
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
    /// Keeps a place free in front of the prompt, for the posts that the turn shows: they are written with its answer.
    pub shows_posts: bool,
    /// For the feed.
    pub events: &'a [feed::New],
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

/// The session that ran the turn before: turns are numbered on where a session goes on from another one. `None`: it is the first,
/// or that one is gone.
pub async fn session_before(
    executor: impl PgExecutor<'_>,
    begun: &Begun,
) -> Result<Option<Uuid>, Failed> {
    if begun.turn <= 1 {
        return Ok(None);
    }
    sqlx::query_file_scalar!("src/domain/turn_phases/before.sql", begun.session_id, begun.turn - 1)
        .fetch_optional(executor)
        .await
        .map_err(Failed::to("look for the turn before"))
}

/// Begins a turn: the session runs, the prompt is in the transcript, the budget is set aside. All or nothing: after an
/// error the caller rolls back.
pub async fn begin(conn: &mut PgConnection, begin: &Begin<'_>) -> Result<Begun, Error> {
    let Begin { session, task_id, lease, reserve, .. } = *begin;
    let turn = session.turn_count + 1;
    match enter(&mut *conn, begin, turn).await? {
        Entered::Overtaken => return Err(sessions::Error::Overtaken(session.id).into()),
        Entered::TaskEnded => return Err(tasks::ended(conn, task_id).await.into()),
        Entered::Started { limit, spent } => {
            limit.admit(Owner::Task, spent, Amount::ZERO, reserve).map_err(tasks::Error::from)?;
        }
    }
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

/// What came of the one statement.
enum Entered {
    Overtaken,
    /// Meanwhile, for instance by a cancellation.
    TaskEnded,
    /// What the task itself may cost, and has cost.
    Started {
        limit: Limit,
        spent: Amount,
    },
}

async fn enter(conn: &mut PgConnection, begin: &Begin<'_>, turn: i32) -> Result<Entered, Failed> {
    let said = messages::Columns::of(begin.messages);
    let told = feed::Columns::of(begin.events);
    let row = sqlx::query_file!(
        "src/domain/turn_phases/begin.sql",
        begin.session.id,
        begin.lease,
        turn,
        i64::try_from(begin.messages.len()).unwrap_or(i64::MAX),
        begin.now,
        begin.task_id,
        begin.attempt,
        begin.job_id,
        begin.reserve.micros,
        begin.reserve.tokens,
        &said.ids,
        &said.roles as _,
        &said.texts as _,
        &said.weights,
        &said.digests as _,
        &said.partials,
        &said.calls as _,
        &said.call_ids as _,
        &said.tools as _,
        &told.campaigns as _,
        &told.tasks as _,
        &told.sessions as _,
        &told.kinds as _,
        &told.data as _,
        begin.minted.map(|minted| minted.external_session_id),
        begin.minted.map(|minted| minted.login),
        i64::from(begin.shows_posts),
    )
    .fetch_optional(conn)
    .await
    .map_err(Failed::to("begin a turn"))?;
    Ok(match row {
        None => Entered::Overtaken,
        Some(row) if !row.started => Entered::TaskEnded,
        Some(row) => Entered::Started {
            limit: Limit { micros: row.budget_micros, tokens: row.budget_tokens },
            spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
        },
    })
}
