//! `dalsegno task children`: adds child tasks of a task, and a task that follows when they have ended.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::add_file;
use crate::{
    cli::{Context, Exit, Failure, args::Id, server::Server, words::read_text},
    domain::text::count,
    operations::{Continuation, HandOut, Noun},
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("prompt_given").required(true).args(["prompt", "prompt_file"])))]
pub(in crate::cli) struct Children {
    #[command(flatten)]
    id: Id,
    /// File with the children: one JSON object per line, as for `task add --file`; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Prompt for the agent of the task after the end of all children; `-` reads it from the standard input.
    prompt: Option<String>,
    /// File with that prompt; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
}

pub(super) async fn run(
    children: &Children,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = server.id(Noun::Task, &children.id.id).await?;
    let prompt = read_text(children.prompt.as_deref(), children.prompt_file.as_ref())?;
    let (numbers, lines) = add_file::read_all(&children.file)?;
    let continuation = Continuation { prompt: prompt.unwrap_or_default() };
    let hand_out = HandOut { id, children: lines, continuation };
    let handed_out = server.call(hand_out).await;
    let handed_out = handed_out.map_err(|failure| add_file::with_lines(failure, &numbers))?;
    context.output.print_data(&handed_out, || {
        let (n, next) = (handed_out.children.len(), handed_out.continuation.id);
        let children = match handed_out.n_created() {
            0 => {
                count(n, "task was added before as a child", "tasks were added before as children")
            }
            _ => count(n, "task is a child", "tasks are children"),
        };
        format!("{children} of task {id}; task {next} follows when all of them have ended")
    });
    Ok(Exit::Ok)
}
