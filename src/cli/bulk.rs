//! `dalsegno bulk`: actions on many tasks, which `task cancel` and `task retry` start.

use clap::Subcommand;

use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    output::{format_fields, format_table},
    server::{Server, with_server},
    words::{time, time_or_dash},
};
use crate::{
    domain::{bulk_actions::BulkAction, ids::short},
    operations::{ListBulkActions, Noun, ShowBulkAction},
};

#[derive(Debug, Subcommand)]
pub(super) enum BulkCommand {
    /// Lists bulk actions, the newest first.
    Ls(Paging),
    /// Shows the progress of a bulk action.
    Show(Id),
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
            context.output.print_data(&actions, || format_actions(&actions));
        }
        BulkCommand::Show(Id { id }) => {
            let id = server.id(Noun::BulkAction, id).await?;
            let action = server.call(ShowBulkAction { id }).await?;
            context.output.print_data(&action, || format_action(&action));
        }
    }
    Ok(Exit::Ok)
}

fn format_actions(actions: &[BulkAction]) -> String {
    let row = |action: &BulkAction| {
        [
            short(action.id),
            action.action.as_str().to_owned(),
            action.state.as_str().to_owned(),
            action.matched.to_string(),
            action.done.to_string(),
            action.skipped.to_string(),
            time(action.created_at),
            time_or_dash(action.ended_at),
        ]
    };
    let head =
        ["ID", "ACTION", "STATE", "TASKS", "DONE", "SKIPPED", "CREATED (UTC)", "ENDED (UTC)"];
    format_table(&head, actions.iter().map(row))
}

fn format_action(action: &BulkAction) -> String {
    let filter = serde_json::to_string(&action.filter).unwrap_or_default();
    let mut list = vec![
        ("bulk action", action.id.to_string()),
        ("action", action.action.as_str().to_owned()),
        ("state", action.state.as_str().to_owned()),
        ("filter", filter),
        ("reason", action.reason.clone()),
        ("tasks", action.matched.to_string()),
        ("done", action.done.to_string()),
        ("skipped", action.skipped.to_string()),
        ("job", action.job_id.to_string()),
        ("created", time(action.created_at)),
        ("ended", time_or_dash(action.ended_at)),
    ];
    list.extend(action.error.iter().map(|error| ("error", error.clone())));
    format_fields(&list)
}
