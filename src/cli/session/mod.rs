//! `dalsegno session`: conversations, and what a person may do to them.

mod archives;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sqlx::PgConnection;

pub(super) use self::show::{interrupted_words, lines, name};
use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    database::with_database,
    output::Output,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page,
        audit::{self, Action},
        campaigns,
        compactions::{self, Cause},
        conversations,
        ids::GivenCampaign,
        messages::Span,
        sessions::{self, Filter, Session},
        tasks::{self, How},
        transaction::{begin, commit},
    },
};

/// A worker that finds nothing to compact says so at once; a summary takes as long as its model.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// Lists sessions, the newest first.
    Ls(List),
    /// Shows a session with its counters, its compactions and its last turns.
    Show(Id),
    /// Prints what was said, in order.
    Transcript(Transcript),
    /// Lists what compactions have put away, or prints one of them: what it held, and what stands in its place.
    Archives(Archives),
    /// Has the next task open a successor, which takes over what it should remember.
    Reset(Reset),
    /// Has a worker fold older conversation into a summary, and waits for its answer for some seconds. Nothing is removed.
    Compact(Id),
    /// Goes back to the view before the compaction that is shown.
    Uncompact(Id),
    /// Stops the turn that runs, by cancelling its task. What had arrived is kept.
    Interrupt(Interrupt),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[arg(long, value_name = "ID")]
    campaign: Option<GivenCampaign>,
    #[arg(long)]
    agent: Option<String>,
    /// Only those that are not closed.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Transcript {
    #[command(flatten)]
    id: Id,
    /// What the model is shown instead: the summary, if there is one, and what was said since.
    #[arg(long, conflicts_with_all = ["after", "limit"])]
    view: bool,
    /// Only what comes after this place.
    #[arg(long, value_name = "PLACE", default_value_t = 0)]
    after: i64,
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Archives {
    #[command(flatten)]
    id: Id,
    /// Prints the one with this number.
    number: Option<i32>,
    /// Only what comes after this place.
    #[arg(long, value_name = "PLACE", default_value_t = 0, requires = "number")]
    after: i64,
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000), requires = "number")]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Reset {
    #[command(flatten)]
    id: Id,
    /// The successor remembers nothing.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
pub(super) struct Interrupt {
    #[command(flatten)]
    id: Id,
    /// Why, for whoever finds it interrupted.
    #[arg(long, default_value = "by an operator")]
    reason: String,
    /// At the next point where nothing is lost, and not now.
    #[arg(long)]
    soft: bool,
}

pub(super) async fn run(command: &SessionCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &SessionCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (output, who, now) = (context.output, context.who(), SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        SessionCommand::Ls(list) => {
            let sessions = self::list(list, &mut tx).await?;
            output.data(&sessions, || lines(&sessions, &context.catalogue()));
        }
        SessionCommand::Show(Id { id }) => {
            let id = sessions::find(&mut *tx, id, None).await?;
            let detail = conversations::detail(&mut tx, id).await?;
            output.data(&detail, || show::words(&detail, &context.catalogue()));
        }
        SessionCommand::Transcript(transcript) => read(transcript, &mut tx, output).await?,
        SessionCommand::Archives(archives) => open_archives(archives, &mut tx, output).await?,
        SessionCommand::Reset(Reset { id, fresh }) => {
            let id = sessions::find(&mut *tx, &id.id, None).await?;
            let session = sessions::reset(&mut tx, id, *fresh, now).await?;
            let data = json!({ "fresh": fresh });
            audit::write(&mut *tx, &who, Action::SessionReset, id, data, now).await?;
            commit(tx).await?;
            output.data(&session, || format!("the next task of session {id} opens its successor"));
        }
        SessionCommand::Compact(Id { id }) => {
            let id = sessions::find(&mut *tx, id, None).await?;
            let before = sessions::get(&mut *tx, id).await?.generation;
            let job_id = compactions::request(&mut tx, id, Cause::Manual).await?.job_id;
            let data = json!({ "job_id": job_id });
            audit::write(&mut *tx, &who, Action::SessionCompact, id, data, now).await?;
            commit(tx).await?;
            let asked = (id, job_id, before);
            let answer = compactions::wait_for_answer(&database.pool, asked, PATIENCE).await?;
            let data = json!({ "session_id": id, "job_id": job_id, "answer": answer });
            output.data(&data, || show::compaction_words(id, job_id, answer.as_ref()));
        }
        SessionCommand::Uncompact(Id { id }) => {
            let id = sessions::find(&mut *tx, id, None).await?;
            let session = conversations::uncompact(&mut tx, id, now).await?;
            let data = json!({ "generation": session.generation });
            audit::write(&mut *tx, &who, Action::SessionUncompact, id, data, now).await?;
            commit(tx).await?;
            output.data(&session, || match session.generation {
                0 => format!("session {id} shows its whole transcript"),
                generation => format!("session {id} shows compaction {generation}"),
            });
        }
        SessionCommand::Interrupt(Interrupt { id, reason, soft }) => {
            let how = if *soft { How::Soft } else { How::Hard };
            let id = sessions::find(&mut *tx, &id.id, None).await?;
            let interrupted = tasks::interrupt(&mut tx, id, how, reason, now).await?;
            let data = json!({ "task_id": interrupted.task_id, "how": how, "reason": reason });
            audit::write(&mut *tx, &who, Action::SessionInterrupt, id, data, now).await?;
            commit(tx).await?;
            output.data(&interrupted, || interrupted_words(&interrupted));
        }
    }
    Ok(Exit::Ok)
}

async fn list(list: &List, conn: &mut PgConnection) -> Result<Vec<Session>, Failure> {
    let campaign_id = match &list.campaign {
        Some(given) => Some(campaigns::find(&mut *conn, given, None).await?),
        None => None,
    };
    let after = match &list.paging.after {
        Some(given) => Some(sessions::find(&mut *conn, given, None).await?),
        None => None,
    };
    let filter =
        Filter { campaign_id, agent: list.agent.as_deref(), open_only: list.open, within: None };
    Ok(sessions::list(conn, filter, Page { after, limit: list.paging.limit }).await?)
}

async fn open_archives(
    Archives { id, number, after, limit }: &Archives,
    conn: &mut PgConnection,
    output: Output,
) -> Result<(), Failure> {
    let id = sessions::find(&mut *conn, &id.id, None).await?;
    match number {
        None => {
            let archives = compactions::archives(&mut *conn, id).await?;
            output.data(&archives, || archives::lines(&archives));
        }
        Some(number) => {
            let archive = compactions::open_archive(conn, id, *number, *after, *limit).await?;
            output.data(&archive, || archives::words(&archive));
        }
    }
    Ok(())
}

async fn read(
    transcript: &Transcript,
    conn: &mut PgConnection,
    output: Output,
) -> Result<(), Failure> {
    let id = sessions::find(&mut *conn, &transcript.id.id, None).await?;
    if transcript.view {
        let history = sessions::history(conn, id).await?;
        output.data(&history, || show::history_words(&history));
        return Ok(());
    }
    let span = Span { after_seq: transcript.after, limit: transcript.limit };
    let stored = sessions::transcript(conn, id, span).await?;
    output.data(&stored, || stored.iter().map(show::message_words).collect());
    Ok(())
}
