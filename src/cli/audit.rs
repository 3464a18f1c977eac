//! `dalsegno audit`: who changed what.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    Context, Exit, Failure,
    campaign_names::CampaignNames,
    output::{Table, short_id, text_cell, time_cell},
    server::{Server, with_server},
    words::{Moment, parse_moment},
};
use crate::{
    domain::{
        amount::format_money,
        audit::{Entry, LIMIT, LimitStep, describe_label, limit_steps},
        ids::GivenCampaign,
    },
    operations::ListAudit,
};

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
    /// Only this action, for example task.cancel, or task for all actions on tasks. Limits: budget for those of agents, users and the day,
    /// campaign.limit and task.limit for the others.
    #[arg(long)]
    action: Option<String>,
    /// Only changes of this thing: an id or the last digits that lists show; the name of a campaign, an agent, a user, an API key or a
    /// schedule; the host of a webhook.
    #[arg(long, value_name = "NAME|ID")]
    subject: Option<String>,
    /// Only changes of this campaign: its name, its id, or a unique beginning or end (8 digits or more) of the id.
    #[arg(long, value_name = "CAMPAIGN", conflicts_with = "subject")]
    campaign: Option<GivenCampaign>,
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
    let subject = match &list.campaign {
        Some(given) => Some(server.campaign(given).await?.to_string()),
        None => list.subject.clone(),
    };
    let page = |cursor: Option<String>, limit| ListAudit {
        actor: list.actor.clone(),
        action: list.action.clone(),
        subject: subject.clone(),
        created_after: list.since.map(|since| since.at),
        created_before: list.until.map(|until| until.at),
        cursor: cursor.map_or(list.after, |cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let entries = server.items(list.limit, page).await?;
    let List { actor, action, since, until, after, .. } = list;
    let is_by = actor.is_some() || action.is_some() || subject.is_some();
    let is_filtered = is_by || since.is_some() || until.is_some() || after.is_some();
    let names = CampaignNames::of_list(None, &entries, context.output, server).await;
    let names = names.unwrap_or_default();
    context
        .output
        .print_rows(&entries, is_filtered, NO_ENTRIES, || format_entries(&entries, &names));
    if entries.is_empty() && list.subject.is_some() && !context.output.is_structured() {
        context.output.print_note(SUBJECTS);
    }
    Ok(Exit::Ok)
}

fn format_entries(entries: &[Entry], campaigns: &CampaignNames) -> String {
    let row = |entry: &Entry| {
        let label = match (entry.actor_kind.as_str(), entry.actor.as_str()) {
            (kind, "") => kind.to_owned(),
            // The handle, which a label has behind the name, is not in the log.
            ("key", name) => format!("key:{name}:"),
            (kind, name) => format!("{kind}:{name}"),
        };
        [
            entry.id.to_string(),
            time_cell(entry.at),
            describe_label(&label),
            entry.peer.clone().unwrap_or_else(|| "-".to_owned()),
            entry.action.clone(),
            subject(entry, campaigns),
            text_cell(&describe_change(entry)),
        ]
    };
    let head = ["ID", "AT (UTC)", "WHO", "FROM", "WHAT", "WHICH", "CHANGE"];
    // The id is only for `--after`.
    let table = Table::new(&head).leaves_out(&["FROM", "ID"]);
    // Changes on the command line of the server have no address.
    let has_addresses = entries.iter().any(|entry| entry.peer.is_some());
    let table = if has_addresses { table } else { table.hides("FROM") };
    table.format(entries.iter().map(row))
}

/// Returns the subject: a campaign by its name, another id shortened, as lists do.
fn subject(entry: &Entry, campaigns: &CampaignNames) -> String {
    match entry.subject.parse() {
        Ok(id) if entry.subject_kind == "campaign" => campaigns.cell(id),
        Ok(id) if entry.subject.len() == 36 => short_id(id),
        _ => entry.subject.clone(),
    }
}

/// Describes a change in words: limits before and after it, or the fields that hold something.
fn describe_change(entry: &Entry) -> String {
    match limit_steps(entry, &format_money) {
        Some(steps) => {
            // The action says already that the limit was changed.
            let name = |it: &LimitStep| match it.name {
                LIMIT => String::new(),
                name => format!("{name} "),
            };
            let words = steps.iter().map(|it| format!("{}{} → {}", name(it), it.before, it.after));
            words.collect::<Vec<_>>().join(", ")
        }
        None => describe_fields(&entry.data),
    }
}

/// Describes the fields of an object in one line: `agent: writer, state: failed`. Fields that hold nothing are left out.
pub(super) fn describe_fields(data: &Value) -> String {
    let fields = data.as_object().into_iter().flatten();
    let words = fields.filter_map(|(name, value)| {
        let value = match (name.strip_suffix("micros"), value.as_i64()) {
            (Some(_), Some(micros)) => format_money(micros),
            _ => describe_value(value),
        };
        let name = match name.as_str() {
            "micros" => "money",
            other => other.strip_suffix("_micros").unwrap_or(other),
        };
        (!value.is_empty()).then(|| format!("{}: {value}", name.replace('_', " ")))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes a value. One that holds nothing is an empty text.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(describe_value).collect::<Vec<_>>().join(" "),
        Value::Object(_) => match describe_fields(value) {
            fields if fields.is_empty() => fields,
            fields => format!("({fields})"),
        },
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn an_id_is_short_and_a_name_is_whole() {
        let of = |kind: &str, text: &str| {
            let entry = Entry {
                id: 1,
                at: DateTime::UNIX_EPOCH,
                actor_kind: "cli".to_owned(),
                actor: "ops@host".to_owned(),
                actor_id: None,
                action: "task.cancel".to_owned(),
                subject_kind: kind.to_owned(),
                subject: text.to_owned(),
                peer: None,
                data: Value::Null,
            };
            subject(&entry, &CampaignNames::default())
        };
        assert_eq!(of("task", "01a222e8-64f9-71bc-81fb-68c265d94ece"), "68c265d94ece");
        assert_eq!(of("schedule", "68c265d94ece"), "68c265d94ece");
        assert_eq!(of("budget", "agent/writer"), "agent/writer");
    }

    #[test]
    fn a_change_is_in_words_and_amounts_are_money() {
        let entry = |action: &str, data: Value| Entry {
            id: 1,
            at: DateTime::UNIX_EPOCH,
            actor_kind: "cli".to_owned(),
            actor: "ops@host".to_owned(),
            actor_id: None,
            action: action.to_owned(),
            subject_kind: "campaign".to_owned(),
            subject: "Harbour".to_owned(),
            peer: None,
            data,
        };
        let limit = serde_json::json!({ "limit": { "micros": 100_000 }, "before": {} });
        assert_eq!(describe_change(&entry("campaign.limit", limit)), "none → 0.10");
        let other = serde_json::json!({
            "budget": { "micros": 5_250_000, "tokens": null }, "soft_micros": 500_000, "tags": ["a", "b"], "is_retry": true, "reason": "", "none": {}
        });
        assert_eq!(
            describe_change(&entry("campaign.create", other)),
            "budget: (money: 5.25), is retry: yes, soft: 0.50, tags: a b"
        );
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
        let names = CampaignNames::default();
        let local = format_entries(&[entry(None)], &names);
        assert!(!local.contains("FROM") && local.contains("budget.set"), "{local}");
        assert!(local.contains(" ops on the command line of host "), "{local}");
        let mixed = format_entries(&[entry(None), entry(Some("10.0.0.7"))], &names);
        assert!(mixed.contains("FROM") && mixed.contains("10.0.0.7"), "{mixed}");
    }
}
