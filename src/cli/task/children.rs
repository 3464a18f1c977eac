//! `dalsegno task children`: hands work of a task out, and has its agent go on afterwards.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::add_file;
use crate::{
    cli::{Context, Exit, Failure, args::Id, server::Server, words::given},
    operations::{Continuation, HandOut, Noun},
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("prompt_given").required(true).args(["prompt", "prompt_file"])))]
pub(in crate::cli) struct Children {
    #[command(flatten)]
    id: Id,
    /// The children: one JSON object per line, as of `task add --file`; `-` reads them from the standard input.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Prompt for the agent of the task when all children have ended.
    prompt: Option<String>,
    /// File with that prompt.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
}

pub(super) async fn run(
    children: &Children,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = server.id(Noun::Task, &children.id.id).await?;
    let prompt = given(children.prompt.as_deref(), children.prompt_file.as_ref())?;
    let (numbers, lines) = add_file::read_all(&children.file)?;
    let continuation = Continuation { prompt: prompt.unwrap_or_default() };
    let hand_out = HandOut { id, children: lines, continuation };
    let handed_out = server.call(hand_out).await;
    let handed_out = handed_out.map_err(|failure| add_file::with_lines(failure, &numbers))?;
    context.output.data(&handed_out, || {
        format!(
            "{} tasks are children of task {id}; task {} follows when all of them have ended",
            handed_out.children.len(),
            handed_out.continuation.id
        )
    });
    Ok(Exit::Ok)
}
