//! `dalsegno blackboard`: what the people and agents of a campaign write down together.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::Value;

use super::{
    Context, Exit, Failure,
    args::CampaignId,
    output::table,
    server::{Server, with_server},
    words::{given, time},
};
use crate::{
    domain::blackboard::{self, Entry, Written},
    operations::{ListBlackboardChanges, PatchBlackboard, SetBlackboard, ShowBlackboard},
};

#[derive(Debug, Subcommand)]
pub(super) enum BlackboardCommand {
    /// Prints the document; with --json its version, too.
    Show(Show),
    /// Sets the document in place of a version; exits 5 if that is not the current one.
    Set(Set),
    /// Merges a JSON Merge Patch (RFC 7396) into the document: null removes a key.
    Patch(Patch),
    /// Lists its changes, the newest first.
    History(History),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The campaign.
    #[command(flatten)]
    campaign: CampaignId,
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
    /// The version that it replaces; 0 where nobody has written anything yet.
    #[arg(long, value_name = "VERSION")]
    expected_version: i64,
}

#[derive(Debug, Args)]
pub(super) struct Patch {
    #[command(flatten)]
    campaign: CampaignId,
    #[command(flatten)]
    json: JsonText,
    /// Merge it into that version and no other.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i64>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("json_given").required(true).args(["text", "file"])))]
struct JsonText {
    /// An object as JSON; `-` reads it from the standard input.
    text: Option<String>,
    /// File with the object.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    campaign: CampaignId,
    /// Only versions before this one.
    #[arg(long, value_name = "VERSION")]
    before: Option<i64>,
    /// Lists at most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(command: &BlackboardCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| on(command, context, server).await).await
}

async fn on(
    command: &BlackboardCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        BlackboardCommand::Show(Show { campaign, version }) => {
            let id = server.campaign(&campaign.id).await?;
            let shown = server.call(ShowBlackboard { id, version: *version }).await?;
            output.data(&shown, || format!("{:#}", shown.document));
        }
        BlackboardCommand::Set(Set { campaign, json, expected_version }) => {
            let (document, expected_version) = (json.value()?, *expected_version);
            let id = server.campaign(&campaign.id).await?;
            let written = server.call(SetBlackboard { id, document, expected_version }).await?;
            output.data(&written, || words(&written));
        }
        BlackboardCommand::Patch(Patch { campaign, json, expected_version }) => {
            let (patch, expected_version) = (json.value()?, *expected_version);
            let id = server.campaign(&campaign.id).await?;
            let written = server.call(PatchBlackboard { id, patch, expected_version }).await?;
            output.data(&written, || words(&written));
        }
        BlackboardCommand::History(History { campaign, before, limit }) => {
            let id = server.campaign(&campaign.id).await?;
            let page = |cursor: Option<String>, limit| ListBlackboardChanges {
                id,
                cursor: cursor.map_or(*before, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let entries = server.items(*limit, page).await?;
            output.data(&entries, || lines(&entries));
        }
    }
    Ok(Exit::Ok)
}

impl JsonText {
    fn value(&self) -> Result<Value, Failure> {
        let text = given(self.text.as_deref(), self.file.as_ref())?.unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| {
            Failure::new(Exit::Usage, anyhow!(error).context("the given text is not valid JSON"))
        })
    }
}

fn words(written: &Written) -> String {
    let version = written.blackboard.version;
    match written.changed {
        true => format!("the blackboard is at version {version}"),
        false => format!("the blackboard says so already, at version {version}"),
    }
}

fn lines(entries: &[Entry]) -> String {
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
    table(&["VERSION", "AT", "BY", "KIND", "BYTES", "DIFFERENT"], entries.iter().map(row))
}
