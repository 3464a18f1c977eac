//! `dalsegno blackboard`: the shared JSON document of a campaign.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::Value;

use super::{
    Context, Exit, Failure,
    args::{CampaignId, ShownCampaign},
    output::format_table,
    server::{Server, with_server},
    words::{read_text, time},
};
use crate::{
    domain::blackboard::{self, Entry, WriteOutcome},
    operations::{ListBlackboardChanges, PatchBlackboard, SetBlackboard, ShowBlackboard},
};

#[derive(Debug, Subcommand)]
pub(super) enum BlackboardCommand {
    /// Prints the document; with --json also its version.
    Show(Show),
    /// Replaces a version of the document; exits 5 if that is not the current one.
    #[command(
        override_usage = "dalsegno blackboard set --expected-version <VERSION> <CAMPAIGN> <TEXT>"
    )]
    Set(Set),
    /// Merges a JSON Merge Patch (RFC 7396) into the document: null removes a key.
    Patch(Patch),
    /// Lists the changes, the newest first.
    History(History),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    campaign: ShownCampaign,
    /// An earlier version.
    #[arg(long)]
    version: Option<i64>,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    campaign: CampaignId,
    #[command(flatten)]
    json: JsonText,
    /// The version to replace; 0 for a document that does not exist yet.
    #[arg(long, value_name = "VERSION")]
    expected_version: i64,
}

#[derive(Debug, Args)]
pub(super) struct Patch {
    #[command(flatten)]
    campaign: CampaignId,
    #[command(flatten)]
    json: JsonText,
    /// Refuses the change unless this is the current version.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i64>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("json_given").required(true).args(["text", "file"])))]
struct JsonText {
    /// JSON object; `-` reads it from the standard input.
    text: Option<String>,
    /// File with the JSON object; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    campaign: ShownCampaign,
    /// Only versions before this one.
    #[arg(long, value_name = "VERSION")]
    before: Option<i64>,
    /// Maximum number of versions, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(command: &BlackboardCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &BlackboardCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        BlackboardCommand::Show(Show { campaign, version }) => {
            let id = campaign.id(context, server).await?;
            let shown = server.call(ShowBlackboard { id, version: *version }).await?;
            output.print_data(&shown, || format!("{:#}", shown.document));
        }
        BlackboardCommand::Set(Set { campaign, json, expected_version }) => {
            let (document, expected_version) = (json.value()?, *expected_version);
            let id = server.campaign(&campaign.id).await?;
            let written = server.call(SetBlackboard { id, document, expected_version }).await?;
            output.print_data(&written, || format_written(&written));
        }
        BlackboardCommand::Patch(Patch { campaign, json, expected_version }) => {
            let (patch, expected_version) = (json.value()?, *expected_version);
            let id = server.campaign(&campaign.id).await?;
            let written = server.call(PatchBlackboard { id, patch, expected_version }).await?;
            output.print_data(&written, || format_written(&written));
        }
        BlackboardCommand::History(History { campaign, before, limit }) => {
            let id = campaign.id(context, server).await?;
            let page = |cursor: Option<String>, limit| ListBlackboardChanges {
                id,
                cursor: cursor.map_or(*before, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let entries = server.items(*limit, page).await?;
            output.print_data(&entries, || format_entries(&entries));
        }
    }
    Ok(Exit::Ok)
}

impl JsonText {
    fn value(&self) -> Result<Value, Failure> {
        let text = read_text(self.text.as_deref(), self.file.as_ref())?.unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| {
            Failure::new(Exit::Usage, anyhow!(error).context("the given text is not valid JSON"))
        })
    }
}

fn format_written(written: &WriteOutcome) -> String {
    let version = written.blackboard.version;
    match written.changed {
        true => format!("the blackboard is at version {version}"),
        false => format!(
            "nothing changed: the blackboard already has this content, at version {version}"
        ),
    }
}

fn format_entries(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let kind = match entry.kind {
            blackboard::Kind::Set => "set",
            blackboard::Kind::Patch => "patch",
        };
        [
            entry.version.to_string(),
            time(entry.changed_at),
            entry.actor.clone(),
            kind.to_owned(),
            entry.bytes.to_string(),
            entry.paths.join(" "),
        ]
    };
    format_table(&["VERSION", "AT", "BY", "KIND", "BYTES", "DIFFERENT"], entries.iter().map(row))
}
