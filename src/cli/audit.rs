//! `dalsegno audit`: who changed what.

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::{Table, short_id, time_cell},
    server::{Server, with_server},
    words::{Moment, parse_moment},
};
use crate::{domain::audit::Entry, operations::ListAudit};

/// Printed below an empty list.
const NO_ENTRIES: &str =
    "no entries: each command that changes something adds one, such as `dalsegno campaign create`";

/// Printed if no entry has the subject.
const SUBJECTS: &str =
    "`--subject` takes an id, its last digits as lists show them (of the newest 100000 entries),
the name of a campaign, an agent, a user, an API key or a schedule, or the host of a webhook";

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Lists changes made through the API and the command line, the newest first.
    ///
    /// Tasks are not in it: each task names its author.
    Ls(List),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only changes by this caller: a name, the id of a key, or a kind (key, admin_key, cli, agent, anonymous).
    #[arg(long)]
    actor: Option<String>,
    /// Only this action, for example task.cancel, or task for all actions on tasks.
    #[arg(long)]
    action: Option<String>,
    /// Only changes of this thing: an id or the last digits that lists show; the name of a campaign, an agent, a user, an API key or a schedule; the host of a webhook.
    #[arg(long, value_name = "NAME|ID")]
    subject: Option<String>,
    /// Only changes since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    /// Only changes before then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Moment>,
    /// Continues after this line: the last id of the previous page.
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    /// Maximum number of lines, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(command: &AuditCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    AuditCommand::Ls(list): &AuditCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let page = |cursor: Option<String>, limit| ListAudit {
        actor: list.actor.clone(),
        action: list.action.clone(),
        subject: list.subject.clone(),
        created_after: list.since.map(|since| since.at),
        created_before: list.until.map(|until| until.at),
        cursor: cursor.map_or(list.after, |cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let entries = server.items(list.limit, page).await?;
    let List { actor, action, subject, since, until, after, limit: _ } = list;
    let is_by = actor.is_some() || action.is_some() || subject.is_some();
    let is_filtered = is_by || since.is_some() || until.is_some() || after.is_some();
    context.output.print_rows(&entries, is_filtered, NO_ENTRIES, || format_entries(&entries));
    if entries.is_empty() && subject.is_some() && !context.output.is_structured() {
        context.output.print_note(SUBJECTS);
    }
    Ok(Exit::Ok)
}

fn format_entries(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let actor = match entry.actor.as_str() {
            "" => entry.actor_kind.clone(),
            name => format!("{} {name}", entry.actor_kind),
        };
        [
            entry.id.to_string(),
            time_cell(entry.at),
            actor,
            entry.peer.clone().unwrap_or_else(|| "-".to_owned()),
            entry.action.clone(),
            subject_cell(&entry.subject),
            entry.data.to_string(),
        ]
    };
    let head = ["ID", "AT (UTC)", "WHO", "FROM", "WHAT", "WHICH", "DATA"];
    let table = Table::new(&head).leaves_out(&["FROM"]);
    // Changes on the command line of the server have no address.
    let has_addresses = entries.iter().any(|entry| entry.peer.is_some());
    let table = if has_addresses { table } else { table.hides("FROM") };
    table.format(entries.iter().map(row))
}

/// Shortens an id, as other lists do.
fn subject_cell(subject: &str) -> String {
    match subject.parse() {
        Ok(id) if subject.len() == 36 => short_id(id),
        _ => subject.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn an_id_is_short_and_a_name_is_whole() {
        assert_eq!(subject_cell("01a222e8-64f9-71bc-81fb-68c265d94ece"), "68c265d94ece");
        assert_eq!(subject_cell("68c265d94ece"), "68c265d94ece");
        assert_eq!(subject_cell("agent/writer"), "agent/writer");
    }

    #[test]
    fn addresses_have_a_column_only_if_there_are_some() {
        let entry = |peer: Option<&str>| Entry {
            id: 1,
            at: DateTime::UNIX_EPOCH,
            actor_kind: "cli".to_owned(),
            actor: "ops@host".to_owned(),
            actor_id: None,
            action: "budget.set".to_owned(),
            subject_kind: "day".to_owned(),
            subject: "day".to_owned(),
            peer: peer.map(str::to_owned),
            data: serde_json::json!({}),
        };
        let local = format_entries(&[entry(None)]);
        assert!(!local.contains("FROM") && local.contains("budget.set"), "{local}");
        let mixed = format_entries(&[entry(None), entry(Some("10.0.0.7"))]);
        assert!(mixed.contains("FROM") && mixed.contains("10.0.0.7"), "{mixed}");
    }
}
