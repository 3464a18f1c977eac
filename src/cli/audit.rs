//! `dalsegno audit`: who changed what.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::table,
    server::{Server, with_server},
    words::{period, time},
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{audit::Entry, timestamp},
    operations::ListAudit,
};

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Lists changes made through the API and the command line, newest first. Who added a task is stored with the task.
    Ls(List),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Name, id of a key, or kind: key, admin_key, cli, agent, anonymous.
    #[arg(long)]
    actor: Option<String>,
    /// Action such as task.cancel, or task for all changes to tasks.
    #[arg(long)]
    action: Option<String>,
    /// Id or name of the changed thing.
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only changes since this time or within this period: 2026-11-20T12:00:00Z, 24h.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<DateTime<Utc>>,
    /// Only changes before this one: the last id of the previous page.
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(command: &AuditCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| on(command, context, server).await).await
}

async fn on(
    AuditCommand::Ls(list): &AuditCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let page = |cursor: Option<String>, limit| ListAudit {
        actor: list.actor.clone(),
        action: list.action.clone(),
        subject: list.subject.clone(),
        since: list.since,
        cursor: cursor.map_or(list.after, |cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let entries = server.items(list.limit, page).await?;
    context.output.data(&entries, || lines(&entries));
    Ok(Exit::Ok)
}

fn since(text: &str) -> Result<DateTime<Utc>, String> {
    match timestamp::parse(text) {
        Ok(at) => return Ok(at),
        Err(error @ timestamp::Error::OutOfRange) => return Err(error.to_string()),
        Err(timestamp::Error::Unreadable) => {}
    }
    let wrong = |_| format!("`{text}` is no moment: write it as 2026-11-20T12:00:00Z, or as 24h");
    period(text).map(|period| SystemClock.now() - period).map_err(wrong)
}

fn lines(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let actor = match entry.actor.as_str() {
            "" => entry.actor_kind.clone(),
            name => format!("{} {name}", entry.actor_kind),
        };
        [
            entry.id.to_string(),
            time(entry.at),
            actor,
            entry.peer.clone().unwrap_or_else(|| "-".to_owned()),
            entry.action.clone(),
            entry.subject.clone(),
            entry.data.to_string(),
        ]
    };
    let head = ["ID", "AT (UTC)", "WHO", "FROM", "WHAT", "WHICH", "DATA"];
    table(&head, entries.iter().map(row))
}
