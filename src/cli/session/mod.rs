//! `dalsegno session`: sessions of conversations.

mod archives;
mod compaction;
mod markdown;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::time::Instant;
use uuid::Uuid;

pub(super) use self::show::{format_interruption, format_sessions, serialised_name};
use super::{
    Context, Exit, Failure,
    agent_filter::note_unknown_agent,
    args::{Id, InCampaign, Paging},
    campaign_names::CampaignNames,
    estimate::format_estimate,
    output::Output,
    server::{Server, with_server},
    words::{Moment, parse_moment, read_text},
};
use crate::{
    domain::{
        compactions::{self, OpenedArchive},
        tasks::InterruptMode,
    },
    operations::{
        AcceptedCompaction, CompactSession, CompactionAnswer, CompareCompaction, EstimateSession,
        ExplainSession, ForkSession, InterruptSession, ListArchives, ListSessions, MAX_LIMIT, Noun,
        ReadArchive, ReadTranscript, ResetSession, SessionView, ShowCompaction, ShowSession,
        UncompactSession, ViewSession,
    },
};

/// Printed below an empty list.
const NO_SESSIONS: &str = "no sessions: the first task of an agent in a campaign opens one";

/// Time to wait for the worker. If nothing can be compacted, it answers at once; a summary takes as long as its model.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// Lists sessions, the newest first; without --campaign, those of all campaigns.
    Ls(List),
    /// Shows a session with its counters, its compactions and its last turns.
    Show(Id),
    /// Explains the state of a session: the reason, and what happens next.
    Explain(Id),
    /// Prints the low, likely and high cost of the next turn: resumed, after a compaction, and in a new session.
    Estimate(EstimateArgs),
    /// Prints the messages of a session, in order.
    Transcript(Transcript),
    /// Lists the archives of compactions, or prints one of them with its summary.
    Archives(Archives),
    /// Makes the next task start a new session from a summary.
    Reset(Reset),
    /// Asks a worker to summarise older messages, and waits some seconds for the result; no message is removed.
    Compact(Id),
    /// Compares a session before and after a compaction: what was kept, what only the archive has, and which summaries were rejected.
    Compaction(CompactionArgs),
    /// Undoes the current compaction.
    Uncompact(Id),
    /// Stops the running turn by cancelling its task. Output so far is kept.
    Interrupt(Interrupt),
    /// Starts a new conversation as this one was after a turn. The session itself is not changed.
    ///
    /// The fork is a new instance of the agent: tasks of that instance continue it.
    Fork(Fork),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only sessions of this agent. curator_2 is instance 2 of curator.
    #[arg(long)]
    agent: Option<String>,
    /// Only open sessions.
    #[arg(long)]
    open: bool,
    /// Only sessions that began since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct EstimateArgs {
    #[command(flatten)]
    id: Id,
    /// Prompt of the turn; `-` reads it from the standard input. Default: `…` stands for it.
    #[arg(long)]
    prompt: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Transcript {
    #[command(flatten)]
    id: Id,
    /// Prints the context of the model instead: the summary, if any, and the messages since.
    #[arg(long, conflicts_with_all = ["after", "limit"])]
    view: bool,
    /// Prints a Markdown document, in which texts are quotations.
    #[arg(long, conflicts_with = "view")]
    markdown: bool,
    /// Only messages after this place, the number behind `#`.
    #[arg(long, value_name = "PLACE", default_value_t = 0)]
    after: i64,
    /// Maximum number of messages, up to 100000.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Archives {
    #[command(flatten)]
    id: Id,
    /// Number of the archive to print.
    number: Option<i32>,
    /// Only messages after this place, the number behind `#`.
    #[arg(long, value_name = "PLACE", default_value_t = 0, requires = "number")]
    after: i64,
    /// Maximum number of messages, up to 100000.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000), requires = "number")]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct CompactionArgs {
    #[command(flatten)]
    id: Id,
    /// Number of the compaction: `dalsegno session show` lists them. Default: the newest one.
    number: Option<i32>,
}

#[derive(Debug, Args)]
pub(super) struct Reset {
    #[command(flatten)]
    id: Id,
    /// The new session starts without a summary.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
pub(super) struct Interrupt {
    #[command(flatten)]
    id: Id,
    /// Reason, shown with the interrupted task.
    #[arg(long, default_value = "by an operator")]
    reason: String,
    /// Stops at the next safe point instead of immediately.
    #[arg(long)]
    soft: bool,
}

#[derive(Debug, Args)]
pub(super) struct Fork {
    #[command(flatten)]
    id: Id,
    /// Last turn that the fork has, also one of an earlier session of the conversation. A turn that a fork has taken over is forked from the
    /// session that ran it. Default: the last one that is done.
    #[arg(long, value_name = "TURN")]
    at: Option<i32>,
    /// Name of the new instance. Default: that of the given session with `-fork-1`, or the next free number.
    #[arg(long = "as", value_name = "INSTANCE")]
    instance: Option<String>,
}

pub(super) async fn run(command: &SessionCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &SessionCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        SessionCommand::Ls(list) => self::list(list, context, server).await?,
        SessionCommand::Show(Id { id }) => {
            let id = server.id(Noun::Session, id).await?;
            let detail = server.call(ShowSession { id }).await?;
            output.print_data(&detail, || show::format_session(&detail, &context.catalogue()));
        }
        SessionCommand::Explain(Id { id }) => {
            let id = server.id(Noun::Session, id).await?;
            let explanation = server.call(ExplainSession { id }).await?;
            output.print_data(&explanation, || show::format_explanation(&explanation));
        }
        SessionCommand::Estimate(EstimateArgs { id, prompt }) => {
            let id = server.id(Noun::Session, &id.id).await?;
            let prompt = read_text(prompt.as_deref(), None)?;
            let estimate = server.call(EstimateSession { id, prompt }).await?;
            output.print_data(&estimate, || format_estimate(&estimate));
        }
        SessionCommand::Transcript(transcript) => read(transcript, server, output).await?,
        SessionCommand::Archives(archives) => self::archives(archives, server, output).await?,
        SessionCommand::Reset(Reset { id, fresh }) => {
            let id = server.id(Noun::Session, &id.id).await?;
            let session = server.call(ResetSession { id, fresh: *fresh }).await?;
            output.print_data(&session, || {
                format!("the next task of session {id} opens its successor")
            });
        }
        SessionCommand::Compact(Id { id }) => {
            let id = server.id(Noun::Session, id).await?;
            let accepted = server.call(CompactSession { id }).await?;
            let answer = wait_for_answer(&accepted, server).await?;
            let words = || show::format_compaction(id, answer.job_id, answer.answer.as_ref());
            output.print_data(&answer, words);
            if let Some(compactions::Answer::Failed { .. }) = answer.answer {
                return Ok(Exit::Conflict);
            }
        }
        SessionCommand::Compaction(given) => compare(given, server, output).await?,
        SessionCommand::Uncompact(Id { id }) => {
            let id = server.id(Noun::Session, id).await?;
            let session = server.call(UncompactSession { id }).await?;
            output.print_data(&session, || match session.generation {
                0 => format!("session {id} shows its whole transcript"),
                generation => format!("session {id} now uses compaction {generation}"),
            });
        }
        SessionCommand::Interrupt(Interrupt { id, reason, soft }) => {
            let id = server.id(Noun::Session, &id.id).await?;
            let how = if *soft { InterruptMode::Soft } else { InterruptMode::Hard };
            let interrupt = InterruptSession { id, reason: reason.clone(), how };
            let interrupted = server.call(interrupt).await?;
            output.print_data(&interrupted, || format_interruption(&interrupted));
        }
        SessionCommand::Fork(Fork { id, at, instance }) => {
            let id = server.id(Noun::Session, &id.id).await?;
            let fork = ForkSession { id, turn: *at, instance: instance.clone() };
            let fork = server.call(fork).await?;
            output.print_data(&fork, || show::format_fork(&fork));
        }
    }
    Ok(Exit::Ok)
}

async fn list(list: &List, context: &Context, server: &Server) -> Result<(), Failure> {
    let campaign_id = list.campaign.id_if_given(context, server).await?;
    let page = |cursor, limit| ListSessions {
        campaign_id,
        agent: list.agent.clone(),
        open: list.open,
        created_after: list.since.map(|since| since.at),
        cursor,
        limit,
    };
    let sessions = server.list(Noun::Session, &list.paging, page).await?;
    let names = CampaignNames::of_list(campaign_id, &sessions, context.output, server).await;
    let is_filtered = campaign_id.is_some()
        || list.agent.is_some()
        || list.open
        || list.since.is_some()
        || list.paging.after.is_some();
    context.output.print_rows(&sessions, is_filtered, NO_SESSIONS, || {
        format_sessions(&sessions, names.as_ref(), &context.catalogue())
    });
    if sessions.is_empty() {
        note_unknown_agent(list.agent.as_deref(), context, server).await;
    }
    Ok(())
}

async fn read(transcript: &Transcript, server: &Server, output: Output) -> Result<(), Failure> {
    let id = server.id(Noun::Session, &transcript.id.id).await?;
    if transcript.view {
        let SessionView(history) = server.call(ViewSession { id }).await?;
        output.print_data(&history, || show::format_history(&history));
        return Ok(());
    }
    let page = |cursor: Option<String>, limit| ReadTranscript {
        id,
        before: None,
        cursor: cursor.map_or(Some(transcript.after), |cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let stored = server.items(transcript.limit, page).await?;
    match transcript.markdown {
        true => output.print_data(&stored, || markdown::format_transcript(id, &stored)),
        false => output.print_list(&stored, "messages", show::format_message),
    }
    Ok(())
}

async fn archives(archives: &Archives, server: &Server, output: Output) -> Result<(), Failure> {
    let id = server.id(Noun::Session, &archives.id.id).await?;
    match archives.number {
        None => {
            let archives = server.call(ListArchives { id }).await?.items;
            output.print_data(&archives, || archives::format_archives(&archives));
        }
        Some(number) => {
            let archive = open_archive((id, number), archives, server).await?;
            output.print_data(&archive, || archives::format_archive(&archive));
        }
    }
    Ok(())
}

async fn compare(given: &CompactionArgs, server: &Server, output: Output) -> Result<(), Failure> {
    let id = server.id(Noun::Session, &given.id.id).await?;
    let number = match given.number {
        Some(number) => number,
        None => {
            let compactions = server.call(ShowSession { id }).await?.compactions;
            compactions.last().map_or(1, |newest| newest.generation)
        }
    };
    let compared = server.call(CompareCompaction { id, number }).await?;
    output.print_data(&compared, || compaction::format_comparison(&compared));
    Ok(())
}

/// Reads an archive from as many pages as the limit needs.
async fn open_archive(
    (id, number): (Uuid, i32),
    &Archives { after, limit, .. }: &Archives,
    server: &Server,
) -> Result<OpenedArchive, Failure> {
    let page = |cursor, limit: i64| ReadArchive {
        id,
        number,
        cursor: Some(cursor),
        limit: Some(limit.min(MAX_LIMIT)),
    };
    let mut opened = server.call(page(after, limit)).await?;
    loop {
        let left = limit.saturating_sub_unsigned(opened.messages.len() as u64);
        match opened.next.as_deref().map(str::parse) {
            Some(Ok(cursor)) if left > 0 => {
                let more = server.call(page(cursor, left)).await?;
                opened.messages.extend(more.messages);
                opened.next = more.next;
            }
            _ => return Ok(opened),
        }
    }
}

/// Polls for the worker's answer, for at most `PATIENCE`.
async fn wait_for_answer(
    accepted: &AcceptedCompaction,
    server: &Server,
) -> Result<CompactionAnswer, Failure> {
    let &AcceptedCompaction { session_id: id, job_id, generation } = accepted;
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = server.call(ShowCompaction { id, job_id, generation }).await?;
        if answer.answer.is_some() || Instant::now() >= end {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
