//! `dalsegno bulk`: actions on many tasks, which `task cancel` and `task retry` start.

use chrono::TimeDelta;
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    audit::describe_fields,
    output::{Output, format_table, format_wrapped_fields, short_id, time_cell, time_cell_or_dash},
    progress::{Progress, WaitFlag, wait_for_end},
    server::{Server, with_server},
    words::{time, time_or_dash},
};
use crate::{
    domain::bulk_actions::{BulkAction, State},
    operations::{ListBulkActions, Noun, ShowBulkAction},
};

/// Printed below an empty list.
const NO_ACTIONS: &str =
    "no bulk actions: `dalsegno task retry --state failed --dry-run` previews one";

#[derive(Debug, Subcommand)]
pub(super) enum BulkCommand {
    /// Lists bulk actions, the newest first.
    Ls(Paging),
    /// Shows the progress of a bulk action.
    Show(Show),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    id: Id,
    #[command(flatten)]
    wait: WaitFlag,
}

pub(super) async fn run(command: &BulkCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &BulkCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    match command {
        BulkCommand::Ls(paging) => {
            let page = |cursor, limit| ListBulkActions { cursor, limit };
            let actions = server.list(Noun::BulkAction, paging, page).await?;
            context.output.print_rows(&actions, paging.after.is_some(), NO_ACTIONS, || {
                format_actions(&actions)
            });
        }
        BulkCommand::Show(Show { id: Id { id }, wait }) => {
            let id = server.id(Noun::BulkAction, id).await?;
            let (action, exit) = match wait.wait {
                Some(limit) => wait_for_action(id, limit, context.output, server).await?,
                None => (server.call(ShowBulkAction { id }).await?, Exit::Ok),
            };
            context.output.print_data(&action, || format_action(&action));
            return Ok(exit);
        }
    }
    Ok(Exit::Ok)
}

/// Waits for the end of a bulk action. The exit code is that of its state.
pub(super) async fn wait_for_action(
    id: Uuid,
    limit: TimeDelta,
    output: Output,
    server: &Server,
) -> Result<(BulkAction, Exit), Failure> {
    let look = async || {
        let action = server.call(ShowBulkAction { id }).await?;
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let done = count(action.done + action.skipped);
        let progress = Progress { done, total: count(action.matched) };
        let has_ended = action.ended_at.is_some();
        Ok((action, progress, has_ended))
    };
    let (action, exit) = wait_for_end("tasks", limit, output, look).await?;
    let exit = match action.state {
        State::Failed => Exit::Failed,
        State::Cancelled => Exit::Cancelled,
        State::Queued | State::Running | State::Done => exit,
    };
    Ok((action, exit))
}

fn format_actions(actions: &[BulkAction]) -> String {
    let row = |action: &BulkAction| {
        [
            short_id(action.id),
            action.action.as_str().to_owned(),
            action.state.as_str().to_owned(),
            action.matched.to_string(),
            action.done.to_string(),
            action.skipped.to_string(),
            time_cell(action.created_at),
            time_cell_or_dash(action.ended_at),
        ]
    };
    let head =
        ["ID", "ACTION", "STATE", "TASKS", "DONE", "SKIPPED", "CREATED (UTC)", "ENDED (UTC)"];
    format_table(&head, actions.iter().map(row))
}

pub(super) fn format_action(action: &BulkAction) -> String {
    let filter = serde_json::to_value(&action.filter).unwrap_or_default();
    let mut list = vec![
        ("bulk action", action.id.to_string()),
        ("action", action.action.as_str().to_owned()),
        ("state", action.state.as_str().to_owned()),
        ("filter", describe_fields(&filter)),
        ("reason", action.reason.clone()),
        ("tasks", action.matched.to_string()),
        ("done", action.done.to_string()),
        ("skipped", action.skipped.to_string()),
        ("job", action.job_id.to_string()),
        ("created", time(action.created_at)),
        ("ended", time_or_dash(action.ended_at)),
    ];
    list.extend(action.error.iter().map(|error| ("error", error.clone())));
    format_wrapped_fields(&list)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_filter_of_an_action_is_in_words() {
        let action = serde_json::from_value(json!({
            "id": Uuid::nil(), "action": "retry", "filter": { "agent": "writer", "state": "failed", "tags": ["a", "b"] }, "reason": "late",
            "state": "done", "matched": 1, "done": 1, "skipped": 0, "error": null, "job_id": 1, "created_at": "2026-11-20T12:00:00Z",
            "started_at": null, "ended_at": null
        }));
        let text = format_action(&action.unwrap());
        assert!(
            text.contains("\nfilter       agent: writer, state: failed, tags: a b\n"),
            "{text}"
        );
    }
}
