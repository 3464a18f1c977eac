//! End of a turn: the transaction after the provider has answered, failed or been stopped.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{
    Error, StartedTurn,
    end_row::{BoardEntryRow, EndRow},
};
use crate::domain::turns::{HistoryCheck, PUT_OFF, State};
use crate::domain::{
    Amount, StatementError,
    amount::Refusal,
    budgets::{self, Payers, Spender},
    facts, feed, manifests,
    mentions::HandedOn,
    messages::{self, New},
    posts::{self, SourceTurn},
    sessions::{self, Reason},
    tasks,
    transcripts::{self, FileGrowth},
    usage,
};
use crate::transcript::Role;

/// Flag of a turn whose prompt the provider has rejected.
const REJECTED: &str = "prompt_rejected";

/// The common input of all ends of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnEnd<'a> {
    pub turn: &'a StartedTurn,
    /// The calls that were made, including failed ones. Calls that are already in the ledger are not charged again.
    pub calls: &'a [usage::Call<'a>],
    /// Messages for the transcript.
    pub messages: &'a [New],
    pub record: Record<'a>,
    pub now: DateTime<Utc>,
}

/// The record of a turn for people.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// Manifest of the call.
    pub manifest: Option<&'a manifests::New<'a>>,
    /// Events for the feed.
    pub events: &'a [feed::New],
}

/// A turn with an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredTurn<'a> {
    /// The end of the task, or that it asks for a corrected answer.
    pub task: tasks::End<'a>,
    /// Tokens of the window that the last call occupied, counted or estimated. 0 would mean that nothing was answered.
    pub context_tokens: Option<i64>,
    /// The continuation of a conversation that the provider keeps.
    pub kept: Option<ProviderState<'a>>,
    /// The posts that the turn has seen, or None if it did not read the board.
    pub board: Option<BoardProgress<'a>>,
    /// Expiry of the session, unless it is used again.
    pub expires_at: DateTime<Utc>,
    pub calibration: Option<&'a Value>,
    pub checkpoint: Option<&'a Value>,
    /// Flags of this turn for people.
    pub flags: &'a [String],
    /// The proof that the model saw the history.
    pub history_check: HistoryCheck,
    /// Tasks and notes that the answer leads to, if the task came from a post.
    pub handed_on: Option<&'a HandedOn>,
}

/// The part of the board that a turn has seen.
#[derive(Debug, Clone, Copy)]
pub struct BoardProgress<'a> {
    /// Posts up to this place were shown or skipped permanently.
    pub cursor: i64,
    pub shown: Option<ShownPosts<'a>>,
}

/// Posts that were shown in front of the prompt.
#[derive(Debug, Clone, Copy)]
pub struct ShownPosts<'a> {
    /// Places of the posts on the board.
    pub posts: &'a [i64],
    pub entry: &'a New,
    /// The place in the transcript that the begin of the turn has reserved.
    pub seq: i64,
}

/// The state of a conversation that the provider keeps.
#[derive(Debug, Clone, Copy)]
pub struct ProviderState<'a> {
    pub head: Uuid,
    /// The generation that the turn began with. Another one may be shown by now.
    pub generation: i32,
    pub meter: &'a Value,
    /// True if the files were rewritten; the stored ones are then removed.
    pub rewritten: bool,
    pub grown: &'a [FileGrowth<'a>],
}

/// A turn without an answer.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    pub error: &'a str,
    /// The reason for a rebuild of the session before its next turn.
    pub rebuild: Option<Reason>,
    /// True if the task fails, too. Otherwise it waits for its next attempt.
    pub ends_task: bool,
    /// The refusal of the budget at which the task fails.
    pub refusal: Option<&'a Refusal>,
    /// True if the provider has lost the conversation; the next turn rebuilds it from the messages.
    pub forgotten: bool,
    /// True if the turn was stopped, or may have had effects; the next turn is told.
    pub interrupted: bool,
    /// The proof that the model did not see the history; `None` if nothing was proved.
    pub history_check: Option<HistoryCheck>,
    /// True if the provider has rejected the prompt and would again. It stays in the transcript, but is sent again only for its own task.
    pub rejected: bool,
    /// True if the task waits for its provider or its budget, and no attempt is used up.
    pub put_off: bool,
}

/// Ends a turn with its answer. Its task ends with it, unless the answer has to be corrected.
pub async fn commit(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    done: &AnsweredTurn<'_>,
) -> Result<(), Error> {
    let task = done.task;
    let row = EndRow {
        flags: done.flags,
        history_check: Some(done.history_check),
        context_tokens: done.context_tokens,
        board_cursor: done.board.map(|board| board.cursor),
        expires_at: Some(done.expires_at),
        calibration: done.calibration,
        checkpoint: done.checkpoint,
        moves_head: done.kept.is_some(),
        head: done.kept.map(|kept| kept.head),
        generation: done.kept.map(|kept| kept.generation),
        meter: done.kept.map(|kept| kept.meter),
        ..EndRow::of(ending, State::Done, sessions::State::Idle, task)
    };
    let shown = done.board.and_then(|board| board.shown);
    let outcome = Outcome { row, task, shown, handed_on: done.handed_on };
    write(&mut *conn, ending, outcome).await?;
    match &done.kept {
        Some(kept) => Ok(store_transcript(conn, ending.turn.session_id, kept).await?),
        None => Ok(()),
    }
}

/// Ends a turn that was stopped. Output that has arrived stays; the task waits for its next attempt.
pub async fn interrupt(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    why: &str,
) -> Result<(), Error> {
    stop(conn, ending, why, tasks::End::Queued).await
}

/// Ends a turn whose task was cancelled. Output that has arrived stays.
pub async fn cancel(conn: &mut PgConnection, ending: &TurnEnd<'_>, why: &str) -> Result<(), Error> {
    stop(conn, ending, why, tasks::End::Cancelled).await
}

/// Ends a turn that failed.
pub async fn fail(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    failure: &Failure<'_>,
) -> Result<(), Error> {
    let session = match failure.interrupted {
        true => sessions::State::Interrupted,
        false => sessions::State::Error,
    };
    let task = match failure.ends_task {
        true => tasks::End::Failed { error: failure.error, refusal: failure.refusal },
        false => tasks::End::Queued,
    };
    let flags = [(failure.rejected, REJECTED), (failure.put_off, PUT_OFF)];
    let flags: Vec<String> =
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned()).collect();
    let row = EndRow {
        error: Some(failure.error),
        flags: &flags,
        history_check: failure.history_check,
        is_prompt_rejected: failure.rejected,
        rebuild_because: failure.rebuild,
        moves_head: failure.forgotten,
        ..EndRow::of(ending, State::Failed, session, task)
    };
    write(conn, ending, Outcome { row, task, shown: None, handed_on: None }).await
}

async fn stop(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    why: &str,
    task: tasks::End<'_>,
) -> Result<(), Error> {
    let row = EndRow::of(ending, State::Interrupted, sessions::State::Interrupted, task);
    let row = EndRow { error: Some(why), ..row };
    write(conn, ending, Outcome { row, task, shown: None, handed_on: None }).await
}

/// The outcome of the turn for the turn itself, its session and its task.
struct Outcome<'a> {
    row: EndRow<'a>,
    task: tasks::End<'a>,
    shown: Option<ShownPosts<'a>>,
    handed_on: Option<&'a HandedOn>,
}

/// The result of the statement.
struct Hit {
    spent: Amount,
    agent: String,
    instance: String,
    /// The post that the task came from.
    asked_in: Option<Uuid>,
    /// The budgets in which the turn has reserved.
    budgets: Vec<i64>,
    /// The amount of its row, which may be more than the worker knows of ([`super::reserve_more`]).
    reserved: Amount,
}

/// Writes the end in one statement, then the parts that few turns need: closing an ephemeral session, settling the reservation of a task
/// that runs again, and answering a post.
async fn write(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    outcome: Outcome<'_>,
) -> Result<(), Error> {
    let TurnEnd { turn, now, .. } = *ending;
    let hit = write_end(&mut *conn, ending, &outcome).await?;
    let Outcome { task, handed_on, .. } = outcome;
    if turn.ephemeral && !task.is_open() {
        sessions::close(&mut *conn, turn.session_id, Reason::Ended, None, now).await?;
        facts::request(&mut *conn, turn.campaign_id, turn.session_id).await?;
    }
    if task.is_open() && !hit.reserved.is_zero() {
        let payers = Payers { campaign_id: turn.campaign_id, budgets: &hit.budgets };
        let spender = Spender { agent: &hit.agent, task_id: Some(turn.task_id) };
        // The task may wait for one of them in the same transaction, which locks them all before it changes a share.
        budgets::lock(&mut *conn, payers, now).await?;
        budgets::settle(&mut *conn, payers, spender, (hit.reserved, hit.spent), now).await?;
    }
    let (Some(asked_in), Some(task)) = (hit.asked_in, task.outcome()) else {
        return Ok(());
    };
    let ended = posts::EndedTask {
        campaign_id: turn.campaign_id,
        task_id: turn.task_id,
        agent: &hit.agent,
        instance: &hit.instance,
        asked_in,
        outcome: task,
        said: answer_place(ending),
    };
    let answered = match handed_on {
        None => posts::answer(conn, &ended, now).await.map(drop),
        Some(handed_on) => post_answer(conn, &ended, handed_on, now).await,
    };
    Ok(answered.map_err(tasks::Error::from)?)
}

/// Posts the answer to the asker and to the agents that it calls, and links their tasks to the post.
async fn post_answer(
    conn: &mut PgConnection,
    ended: &posts::EndedTask<'_>,
    handed_on: &HandedOn,
    now: DateTime<Utc>,
) -> Result<(), posts::Error> {
    let audience = |asker: &str| handed_on.audience(asker);
    match posts::answer_to(&mut *conn, ended, audience, now).await? {
        Some(post) => handed_on.link_tasks_to_post(conn, &post, ended.campaign_id, now).await,
        None => Ok(()),
    }
}

/// Returns the place of the answer in the transcript.
fn answer_place(ending: &TurnEnd<'_>) -> Option<SourceTurn> {
    let answer = ending.messages.iter().rfind(|new| new.message.role == Role::Assistant)?;
    let TurnEnd { turn, .. } = ending;
    Some(SourceTurn {
        task_id: turn.task_id,
        session_id: turn.session_id,
        turn: turn.turn,
        message_id: Some(answer.id),
    })
}

/// Stores the bytes that were added to the provider's transcript.
async fn store_transcript(
    conn: &mut PgConnection,
    session_id: Uuid,
    kept: &ProviderState<'_>,
) -> Result<(), StatementError> {
    if kept.rewritten {
        transcripts::remove(&mut *conn, session_id).await?;
    }
    for added in kept.grown {
        transcripts::add(&mut *conn, session_id, added).await?;
    }
    Ok(())
}

/// Runs the statement. Returns an error unless the turn runs under this lease and its task is open.
async fn write_end(
    conn: &mut PgConnection,
    ending: &TurnEnd<'_>,
    outcome: &Outcome<'_>,
) -> Result<Hit, Error> {
    let TurnEnd { turn, record, .. } = *ending;
    let board_entry = outcome.shown.map(BoardEntryRow::of);
    let row = sqlx::query_file!(
        "src/domain/turn_phases/end.sql",
        Json(&outcome.row) as _,
        Json(messages::InsertRow::all(ending.messages)) as _,
        Json(board_entry.as_slice()) as _,
        Json(ending.calls) as _,
        Json(record.manifest.as_slice()) as _,
        Json(feed::InsertRow::all(record.events)) as _,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("end a turn"))?;
    match row {
        row if row.task_ended => Ok(Hit {
            spent: Amount { micros: row.micros, tokens: row.tokens },
            agent: row.agent.unwrap_or_default(),
            instance: row.instance.unwrap_or_default(),
            asked_in: row.post_id,
            budgets: row.budgets,
            reserved: Amount { micros: row.reserved_micros, tokens: row.reserved_tokens },
        }),
        row if row.held => Err(tasks::ended_error(conn, turn.task_id).await.into()),
        _ => Err(sessions::Error::Overtaken(turn.session_id).into()),
    }
}
