//! Turns left running by a lost worker.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::partial_output;
use crate::domain::{
    Amount, StatementError,
    agents::SessionMode as Mode,
    batches,
    budgets::{self, Payers, Spender},
    facts, messages,
    sessions::{self, SessionRow},
};

/// A task that ends or waits without another turn.
#[derive(Debug, Clone, Copy)]
pub struct TaskWithoutTurn {
    pub task_id: Uuid,
    pub campaign_id: Uuid,
    pub session_id: Option<Uuid>,
    pub session_mode: Mode,
}

/// The error of a turn that its worker did not end.
const WHY: &str = "the worker was lost while the turn ran";
/// The error of a turn that waited for a batch.
const WITHOUT_BATCH: &str = "the turn no longer waits for its batch, which is cancelled";

/// Ends the turn that a lost worker left running in `session`, whose row the caller has locked. Releases the reservation; the cost of its
/// call is unknown.
///
/// Locks the budget before the task of the coming turn, against the order of [`crate::domain`]. This cannot deadlock, because every
/// transaction that locks this task locks the session's row first.
///
/// Output that had arrived is added to the transcript. A turn that waits for a batch has no worker either: the batch is given up. The task
/// is not changed: the caller is about to run it again, or to run the task that follows its end.
pub async fn interrupt_leftover(
    conn: &mut PgConnection,
    session: &SessionRow,
    now: DateTime<Utc>,
) -> Result<(), sessions::Error> {
    // Read before the update, because RETURNING would give the zeros.
    let reserved = sqlx::query!(
        r#"select reserved_micros, reserved_tokens, coalesce(budgets, '{}') as "budgets!" from dalsegno.turns
          where session_id = $1 and number = $2 and state = 'running' for update"#,
        session.id,
        session.turn_count,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("find the turn of a lost worker"))?;
    let had_batch = batches::give_up(&mut *conn, session.id, session.turn_count).await?;
    sqlx::query!(
        "update dalsegno.turns set state = 'interrupted', ended_at = $3, error = $4, reserved_micros = 0, reserved_tokens = 0
          where session_id = $1 and number = $2 and state = 'running'",
        session.id,
        session.turn_count,
        now,
        if had_batch { WITHOUT_BATCH } else { WHY },
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("end the turn of a lost worker"))?;
    let arrived = partial_output::take(&mut *conn, session.id, session.turn_count, now).await?;
    let arrived: Vec<_> = arrived.into_iter().collect();
    let (turn, seq) = (session.turn_count, session.last_seq + 1);
    messages::append(&mut *conn, session.id, turn, seq, &arrived, now).await?;
    let n_messages = i64::try_from(arrived.len()).unwrap_or_default();
    sessions::take_from_lost_run(&mut *conn, session.id, n_messages).await?;
    if let Some(row) = reserved {
        let reserved = Amount { micros: row.reserved_micros, tokens: row.reserved_tokens };
        let payers = Payers { campaign_id: session.campaign_id, budgets: &row.budgets };
        let amounts = (reserved, Amount::ZERO);
        // The coming turn reserves in the same transaction.
        budgets::lock(&mut *conn, payers, now).await?;
        let spender = Spender { agent: &session.agent, task_id: None };
        budgets::settle(&mut *conn, payers, spender, amounts, now).await?;
    }
    Ok(())
}

/// Cleans up before a task ends without another turn: ends the turn that a lost worker may have left, and closes the ephemeral session of
/// the task.
pub async fn clean_up(
    conn: &mut PgConnection,
    task: TaskWithoutTurn,
    now: DateTime<Utc>,
) -> Result<(), sessions::Error> {
    interrupt_lost(&mut *conn, task, now).await?;
    if task.session_mode == Mode::None
        && let Some(closed) = sessions::close_ephemeral(&mut *conn, task.task_id, now).await?
    {
        facts::request(conn, task.campaign_id, closed).await?;
    }
    Ok(())
}

/// Returns the tasks of those of these turns (session and number) that are in state `running`. If their tasks have no worker, a lost
/// worker left them.
pub async fn left_running(
    executor: impl PgExecutor<'_>,
    turns: &[(Uuid, i32)],
) -> Result<Vec<Uuid>, StatementError> {
    let (sessions, numbers): (Vec<Uuid>, Vec<i32>) = turns.iter().copied().unzip();
    sqlx::query_scalar!(
        "select t.task_id from unnest($1::uuid[], $2::integer[]) as k (session_id, number)
           join dalsegno.turns as t on t.session_id = k.session_id and t.number = k.number and t.state = 'running'",
        &sessions,
        &numbers,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the turns of lost workers"))
}

/// Ends the turn of a lost worker, as [`interrupt_leftover`] does, for a task that is about to wait or end without another turn. Returns
/// false and does nothing if the session runs no turn of this task.
pub async fn interrupt_lost(
    conn: &mut PgConnection,
    task: TaskWithoutTurn,
    now: DateTime<Utc>,
) -> Result<bool, sessions::Error> {
    let Some(session_id) = task.session_id else { return Ok(false) };
    let session = match sessions::lock(&mut *conn, session_id).await {
        // Removed since, long after its last turn.
        Err(sessions::Error::Unknown(_)) => return Ok(false),
        session => session?,
    };
    let running = sqlx::query_scalar!(
        r#"select exists (select from dalsegno.turns where session_id = $1 and number = $2 and task_id = $3 and state = 'running')
               as "running!""#,
        session_id,
        session.turn_count,
        task.task_id,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("find the turn of a lost worker"))?;
    if running {
        interrupt_leftover(conn, &session, now).await?;
    }
    Ok(running)
}
