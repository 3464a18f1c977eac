//! `dalsegno queue`: queues, their counters and their pauses.

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::{format_table, format_wrapped, format_wrapped_table, time_cell, time_cell_or_dash},
    server::{Server, with_server},
};
use crate::{
    domain::explanations::describe_wait_end,
    operations::{
        ListQueues, ListWaits, PauseGroup, PauseQueue, ResumeGroup, ResumeQueue, ShowQueue,
        WaitCounts,
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
            let waits = server.call(ListWaits {}).await?;
            output.print_data(&waits.items, || format_waits(&waits));
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

/// Formats the waits, and below them, for each reason that a person can end, how.
fn format_waits(waits: &WaitCounts) -> String {
    if waits.items.is_empty() {
        return "no job waits\n".to_owned();
    }
    let head = ["QUEUE", "JOBS", "OLDEST (UTC)", "NEXT DUE (UTC)"];
    let row = |wait: &WaitCount| {
        let cells = [
            wait.queue.clone(),
            wait.jobs.to_string(),
            time_cell(wait.oldest_at),
            time_cell_or_dash(wait.next_at),
        ];
        (cells, waits.describe(wait.reason))
    };
    let table = format_wrapped_table(&head, waits.items.iter().map(row), "WAIT FOR");
    let mut ends: Vec<String> = Vec::new();
    for wait in &waits.items {
        let Some(end) = describe_wait_end(wait.reason) else { continue };
        let line = format!("{}: {end}", waits.describe(wait.reason));
        if !ends.contains(&line) {
            ends.push(line);
        }
    }
    let ends = ends.iter().map(|line| format_wrapped("", line));
    let ends: String = ends.collect();
    if ends.is_empty() { table } else { format!("{table}\n{ends}") }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::queue::admin::WaitReason;

    #[test]
    fn waits_are_named_in_words_with_what_ends_them() {
        let of = |queue: &str, reason| WaitCount {
            queue: queue.to_owned(),
            reason,
            jobs: 2,
            oldest_at: DateTime::UNIX_EPOCH,
            next_at: None,
            ready_at: None,
        };
        let items = vec![
            of("turns", WaitReason::Condition),
            of("turns", WaitReason::Person),
            of("turns", WaitReason::Retry),
            of("turns", WaitReason::Snooze),
            of("turns", WaitReason::Slot),
            of("upkeep", WaitReason::Person),
        ];
        let waits = WaitCounts { items, waiting_for_budget: 2, waiting_for_rate_limit: 0 };
        let text = format_waits(&waits);
        assert!(text.contains("space in a budget: `dalsegno budget ls`"), "{text}");
        assert!(text.contains("`dalsegno job explain ID` names the cause"), "{text}");
        assert_eq!(text.matches("its release by a person: ").count(), 1, "{text}");
        assert!(!text.contains(" condition\n") && !text.contains("after an error: "), "{text}");
        assert!(!text.contains("a free slot of a worker: "), "{text}");
        let both = WaitCounts { waiting_for_rate_limit: 1, ..waits };
        let text = format_waits(&both);
        let is_narrow = text.lines().all(|line| line.chars().count() <= 80);
        assert!(is_narrow && text.contains("in a budget (2) or a rate limit (1): "), "{text}");
        let none = WaitCounts { items: Vec::new(), ..both };
        assert_eq!(format_waits(&none), "no job waits\n");
    }
}
