//! The transaction after the provider has answered, failed or been stopped.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Begun, Error, State};
use crate::domain::{
    Amount, Failed, campaigns,
    messages::{self, New},
    sessions::{self, Kept, Left, Reason},
    tasks,
    transcripts::{self, Added},
    usage,
};

/// What every end has.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub turn: &'a Begun,
    /// The calls that were made, failed ones too. Those that are already in the ledger are not charged again.
    pub calls: &'a [usage::Call<'a>],
    /// What is added to the transcript.
    pub messages: &'a [New],
    pub now: DateTime<Utc>,
}

/// A turn that has its answer.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    /// The task's result.
    pub result: &'a str,
    /// What the last call occupied of its window, as counted or as estimated. 0 would say that nothing was answered.
    pub context_tokens: Option<i64>,
    /// Where a provider that keeps the conversation itself goes on, and what its transcript grew by.
    pub kept: Option<Continued<'a>>,
    /// The last post that the agent has seen.
    pub board_cursor: Option<i64>,
    /// When the session expires if nobody uses it again.
    pub expires_at: DateTime<Utc>,
    pub calibration: Option<&'a Value>,
    pub checkpoint: Option<&'a Value>,
    /// What a person should know of this turn.
    pub flags: &'a [String],
}

/// How such a provider's conversation stands.
#[derive(Debug, Clone, Copy)]
pub struct Continued<'a> {
    pub head: Uuid,
    pub meter: &'a Value,
    /// The files have been written anew: those that were stored do not count any more.
    pub rewritten: bool,
    pub grown: &'a [Added<'a>],
}

/// A turn that has none.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    pub error: &'a str,
    /// What has to become of the session before its next turn.
    pub rebuild: Option<Reason>,
    /// Whether the task fails with it. Otherwise it waits for its next attempt.
    pub ends_task: bool,
    /// The provider has lost the conversation: the next turn writes it anew from the messages.
    pub forgotten: bool,
}

/// Ends a turn that has its answer, and its task with it.
pub async fn commit(
    conn: &mut PgConnection,
    ending: &Ending<'_>,
    done: &Done<'_>,
) -> Result<(), Error> {
    let left = Left {
        context_tokens: done.context_tokens,
        kept: done
            .kept
            .map_or(Kept::AsBefore, |kept| Kept::Head { head: kept.head, meter: kept.meter }),
        board_cursor: done.board_cursor,
        expires_at: Some(done.expires_at),
        calibration: done.calibration,
        checkpoint: done.checkpoint,
        ..left(sessions::State::Idle, ending)
    };
    let spent = write(&mut *conn, ending, &left, State::Done, None, done.flags).await?;
    if let Some(kept) = &done.kept {
        keep(&mut *conn, ending.turn.session_id, kept).await?;
    }
    let task = tasks::End::Done { result: done.result };
    finish(conn, ending, spent, task).await
}

/// Ends a turn that was stopped: what had arrived stays, the task waits for its next attempt.
pub async fn interrupt(
    conn: &mut PgConnection,
    ending: &Ending<'_>,
    why: &str,
) -> Result<(), Error> {
    let left = left(sessions::State::Interrupted, ending);
    let spent = write(&mut *conn, ending, &left, State::Interrupted, Some(why), &[]).await?;
    finish(conn, ending, spent, tasks::End::Queued).await
}

/// Ends a turn that was stopped because somebody cancelled its task: what had arrived stays.
pub async fn cancel(conn: &mut PgConnection, ending: &Ending<'_>, why: &str) -> Result<(), Error> {
    let left = left(sessions::State::Interrupted, ending);
    let spent = write(&mut *conn, ending, &left, State::Interrupted, Some(why), &[]).await?;
    finish(conn, ending, spent, tasks::End::Cancelled).await
}

/// Ends a turn that failed.
pub async fn fail(
    conn: &mut PgConnection,
    ending: &Ending<'_>,
    failure: &Failure<'_>,
) -> Result<(), Error> {
    let kept = if failure.forgotten { Kept::Lost } else { Kept::AsBefore };
    let left =
        Left { rebuild_because: failure.rebuild, kept, ..left(sessions::State::Error, ending) };
    let spent = write(&mut *conn, ending, &left, State::Failed, Some(failure.error), &[]).await?;
    let task = match failure.ends_task {
        true => tasks::End::Failed { error: failure.error },
        false => tasks::End::Queued,
    };
    finish(conn, ending, spent, task).await
}

fn left<'a>(state: sessions::State, ending: &Ending<'_>) -> Left<'a> {
    let used: Amount = ending.calls.iter().map(usage::Call::amount).sum();
    Left {
        state,
        n_messages: i64::try_from(ending.messages.len()).unwrap_or(i64::MAX),
        tokens_used: used.tokens,
        context_tokens: None,
        kept: Kept::AsBefore,
        board_cursor: None,
        expires_at: None,
        calibration: None,
        checkpoint: None,
        rebuild_because: None,
        now: ending.now,
    }
}

/// Session, transcript, ledger and turn. Says what has to be charged.
async fn write(
    conn: &mut PgConnection,
    ending: &Ending<'_>,
    left: &Left<'_>,
    state: State,
    error: Option<&str>,
    flags: &[String],
) -> Result<Amount, Error> {
    let Ending { turn, calls, messages, now } = *ending;
    let (id, number) = (turn.session_id, turn.turn);
    let first_seq = sessions::leave(&mut *conn, id, number, turn.lease, left).await?;
    messages::append(&mut *conn, id, number, first_seq, messages, now).await?;
    let mut new = Vec::with_capacity(calls.len());
    for call in calls {
        if usage::record(&mut *conn, call).await? {
            new.push(call);
        }
    }
    update(&mut *conn, turn, state, error, flags, &new, now).await?;
    Ok(new.into_iter().map(usage::Call::amount).sum())
}

/// What the provider's own transcript grew by.
async fn keep(
    conn: &mut PgConnection,
    session_id: Uuid,
    kept: &Continued<'_>,
) -> Result<(), Failed> {
    if kept.rewritten {
        transcripts::remove(&mut *conn, session_id).await?;
    }
    for added in kept.grown {
        transcripts::add(&mut *conn, session_id, added).await?;
    }
    Ok(())
}

/// Task, then the budget that all turns of the campaign share; and the end of a session that was the task's own.
async fn finish(
    conn: &mut PgConnection,
    ending: &Ending<'_>,
    spent: Amount,
    task: tasks::End<'_>,
) -> Result<(), Error> {
    let Ending { turn, now, .. } = *ending;
    let ends = !matches!(task, tasks::End::Queued);
    if turn.ephemeral && ends {
        sessions::close(&mut *conn, turn.session_id, Reason::Ended, None, now).await?;
    }
    tasks::end(&mut *conn, turn.task_id, task, spent, now).await?;
    campaigns::settle(&mut *conn, turn.campaign_id, turn.reserved, spent).await?;
    Ok(())
}

/// Must hit the one running turn of this lease.
async fn update(
    executor: impl PgExecutor<'_>,
    turn: &Begun,
    state: State,
    error: Option<&str>,
    flags: &[String],
    calls: &[&usage::Call<'_>],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sum = |count: fn(&usage::Tokens) -> Option<i64>| {
        calls.iter().filter_map(|call| count(&call.tokens)).sum::<i64>()
    };
    let ended = sqlx::query!(
        "update dalsegno.turns
            set state = $4, ended_at = $5, error = $6, flags = $7, reserved_micros = 0, reserved_tokens = 0, input_tokens = $8,
                output_tokens = $9, cache_read_tokens = $10, cache_creation_tokens = $11, cost_micros = $12, calls = $13
          where session_id = $1 and number = $2 and lease = $3 and state = 'running'",
        turn.session_id,
        turn.turn,
        turn.lease,
        state as State,
        now,
        error,
        flags,
        sum(|tokens| tokens.input),
        sum(|tokens| tokens.output),
        sum(|tokens| tokens.cache_read),
        sum(|tokens| tokens.cache_creation),
        calls.iter().map(|call| call.cost_micros).sum::<i64>(),
        i32::try_from(calls.len()).unwrap_or(i32::MAX),
    )
    .execute(executor)
    .await
    .map_err(Failed::to("end a turn"))?;
    match ended.rows_affected() {
        1 => Ok(()),
        _ => Err(overtaken(turn.session_id)),
    }
}

fn overtaken(session_id: Uuid) -> Error {
    sessions::Error::Overtaken(session_id).into()
}
