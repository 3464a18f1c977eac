//! `dalsegno queue`: queues, their counters and their pauses.

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::{format_table, time_cell, time_cell_or_dash},
    server::{Server, with_server},
};
use crate::{
    operations::{
        ListQueues, ListWaits, PauseGroup, PauseQueue, ResumeGroup, ResumeQueue, ShowQueue,
    },
    queue::admin::{QueueView, WaitCount},
};

#[derive(Debug, Subcommand)]
pub(super) enum QueueCommand {
    /// Lists the queues with their counters.
    Ls,
    /// Shows one queue.
    Show {
        /// Name of the queue.
        name: String,
    },
    /// Counts waiting jobs by the reason for which they wait.
    Waits,
    /// Pauses a queue: no job starts until it is resumed. Running jobs go on.
    Pause(Pause),
    /// Resumes a paused queue or group.
    Resume(Target),
}

#[derive(Debug, Args)]
pub(super) struct Target {
    /// Name of the queue, or of the group with --group.
    name: String,
    /// The name is that of a group, such as a campaign.
    #[arg(long)]
    group: bool,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Reason, shown with the queue while it is paused.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

pub(super) async fn run(command: &QueueCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &QueueCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        QueueCommand::Ls => {
            let queues = server.call(ListQueues {}).await?.items;
            output.print_data(&queues, || format_queues(&queues));
        }
        QueueCommand::Show { name } => {
            let queue = server.call(ShowQueue { name: name.clone() }).await?;
            output.print_data(&queue, || format_queues(std::slice::from_ref(&queue)));
        }
        QueueCommand::Waits => {
            let waits = server.call(ListWaits {}).await?.items;
            output.print_data(&waits, || format_waits(&waits));
        }
        QueueCommand::Pause(Pause { target: Target { name, group }, reason }) => {
            let (name, reason) = (name.clone(), reason.clone());
            let done = match group {
                true => server.call(PauseGroup { name, reason }).await?,
                false => server.call(PauseQueue { name, reason }).await?,
            };
            output.print_data(&done, || format!("`{}` is paused", done.paused));
        }
        QueueCommand::Resume(Target { name, group }) => {
            let name = name.clone();
            let done = match group {
                true => server.call(ResumeGroup { name }).await?,
                false => server.call(ResumeQueue { name }).await?,
            };
            output.print_data(&done, || match done.was_paused {
                true => format!("`{}` is resumed", done.resumed),
                false => format!("`{}` was not paused", done.resumed),
            });
        }
    }
    Ok(Exit::Ok)
}

fn format_queues(queues: &[QueueView]) -> String {
    let head = [
        "QUEUE",
        "READY",
        "RUNNING",
        "BLOCKED",
        "SCHEDULED",
        "HELD",
        "DEAD",
        "WORKERS",
        "OLDEST",
        "",
    ];
    format_table(
        &head,
        queues.iter().map(|queue| {
            let paused = queue.pause_reason.as_ref().map(|reason| format!("paused: {reason}"));
            let oldest =
                queue.oldest_ready_secs.map_or(String::new(), |secs| format!("{secs:.0} s"));
            [
                queue.queue.clone(),
                queue.ready.to_string(),
                queue.running.to_string(),
                queue.blocked.to_string(),
                queue.scheduled.to_string(),
                queue.held.to_string(),
                queue.dead.to_string(),
                queue.workers.to_string(),
                oldest,
                paused.unwrap_or_default(),
            ]
        }),
    )
}

fn format_waits(waits: &[WaitCount]) -> String {
    let head = ["QUEUE", "JOBS", "WAIT FOR", "OLDEST (UTC)", "NEXT DUE (UTC)"];
    format_table(
        &head,
        waits.iter().map(|wait| {
            let reason = serde_json::to_value(wait.reason).ok();
            let reason = reason.as_ref().and_then(|reason| reason.as_str()).unwrap_or_default();
            [
                wait.queue.clone(),
                wait.jobs.to_string(),
                reason.replace('_', " "),
                time_cell(wait.oldest_at),
                time_cell_or_dash(wait.next_at),
            ]
        }),
    )
}
