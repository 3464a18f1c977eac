//! `dalsegno turn`: turns of sessions, and what their calls were sent.

pub(super) mod list;
pub(super) mod rerun;
mod rerun_text;
mod show;

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    server::{Server, with_server},
};
use crate::{
    domain::ids::PartialId,
    operations::{ListTurns, Noun, ShowSession, ShowTurn},
};

#[derive(Debug, Subcommand)]
pub(super) enum TurnCommand {
    /// Lists the turns of a session, the newest first.
    Ls(List),
    /// Shows a turn, its calls, and each part of their contexts: sent or left out, and why.
    Show(Show),
    Rerun(rerun::RerunFlags),
    /// Lists the reruns of a turn, and compares their answers with that of the turn.
    Reruns(rerun::Place),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    session: InSession,
    /// Continues after this turn: the last number of the previous page.
    #[arg(long, value_name = "TURN")]
    after: Option<i32>,
    /// Maximum number of turns, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    session: InSession,
    /// The number of the turn: `dalsegno turn ls` lists it.
    #[arg(value_name = "TURN")]
    number: i32,
}

#[derive(Debug, Args)]
pub(super) struct InSession {
    /// The session: its id, or a unique beginning or end of it. An end has at least 8 digits.
    #[arg(value_name = "SESSION")]
    session: PartialId,
}

pub(super) async fn run(command: &TurnCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &TurnCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        TurnCommand::Ls(list) => {
            let id = server.id(Noun::Session, &list.session.session).await?;
            let page = |cursor: Option<String>, limit| ListTurns {
                id,
                cursor: cursor.map_or(list.after, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let turns = server.items(list.limit, page).await?;
            output.print_data(&turns, || list::format_turns(&turns, &context.catalogue()));
            // Numbers continue those of the session before.
            let begins_later = i64::try_from(turns.len()).is_ok_and(|n| n < list.limit)
                && turns.last().is_none_or(|listed| listed.turn.number > 1);
            if begins_later && !output.is_structured() {
                let session = server.call(ShowSession { id }).await?.session;
                // A session that was opened afresh begins with turn 1.
                if let Some(before) = session.predecessor_id.filter(|_| session.turns > 0) {
                    output.print_note(&format!(
                        "earlier turns are in the session before: `dalsegno turn ls {before}`"
                    ));
                }
            }
        }
        TurnCommand::Show(show) => {
            let id = server.id(Noun::Session, &show.session.session).await?;
            let turn = server.call(ShowTurn { id, number: show.number }).await?;
            output.print_data(&turn, || show::format_turn(&turn, &context.catalogue()));
        }
        TurnCommand::Rerun(flags) => {
            let (reruns, exit) = rerun::rerun(flags, context, server).await?;
            output.print_data(&reruns, || rerun_text::format_reruns(&reruns));
            return Ok(exit);
        }
        TurnCommand::Reruns(place) => {
            let reruns = rerun::list(place, server).await?;
            output.print_data(&reruns, || rerun_text::format_reruns(&reruns));
        }
    }
    Ok(Exit::Ok)
}
