//! `dalsegno blackboard`: the shared JSON document of a campaign.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::{CampaignChoice, InCampaign},
    output::{format_table, time_cell},
    server::{Server, with_server},
    words::read_text,
};
use crate::{
    domain::{
        audit::describe_label,
        blackboard::{self, Entry, WriteOutcome},
        ids::{GivenCampaign, NoId},
    },
    operations::{ListBlackboardChanges, PatchBlackboard, SetBlackboard, ShowBlackboard},
};

#[derive(Debug, Subcommand)]
pub(super) enum BlackboardCommand {
    /// Prints the document, and its version on stderr; with --json both on stdout.
    Show(Show),
    /// Replaces a version of the document; exits 5 if that is not the current one.
    #[command(
        override_usage = "dalsegno blackboard set [OPTIONS] --expected-version <VERSION> [CAMPAIGN] <TEXT>\n       dalsegno blackboard set [OPTIONS] --expected-version <VERSION> --file <FILE> [CAMPAIGN]"
    )]
    Set(Set),
    /// Merges a JSON Merge Patch (RFC 7396) into the document: null removes a key.
    #[command(
        override_usage = "dalsegno blackboard patch [OPTIONS] [CAMPAIGN] <TEXT>\n       dalsegno blackboard patch [OPTIONS] --file <FILE> [CAMPAIGN]"
    )]
    Patch(Patch),
    /// Lists the changes, the newest first.
    History(History),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    campaign: CampaignChoice,
    /// An earlier version.
    #[arg(long)]
    version: Option<i64>,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    content: Content,
    /// The version to replace; 0 for a document that does not exist yet.
    #[arg(long, value_name = "VERSION")]
    expected_version: i64,
}

#[derive(Debug, Args)]
pub(super) struct Patch {
    #[command(flatten)]
    content: Content,
    /// Refuses the change unless this is the current version.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i64>,
}

/// The campaign and the JSON text. One argument alone is the text, or with --file the campaign.
#[derive(Debug, Args)]
struct Content {
    /// The campaign: its name, its id, or a unique beginning or end (8 digits or more) of the id.
    #[arg(value_name = "CAMPAIGN")]
    first: Option<String>,
    /// JSON object; `-` reads it from the standard input.
    #[arg(conflicts_with = "file")]
    text: Option<String>,
    #[command(flatten)]
    named: InCampaign,
    /// File with the JSON object; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    campaign: CampaignChoice,
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
            // Not on stdout, so that the document can be read by a program.
            if !output.is_structured() {
                output.print_note(&format!("version {}", shown.version));
            }
        }
        BlackboardCommand::Set(Set { content, expected_version }) => {
            let (id, document) = content.resolve(context, server).await?;
            let expected_version = *expected_version;
            let written = server.call(SetBlackboard { id, document, expected_version }).await?;
            output.print_data(&written, || format_written(&written));
        }
        BlackboardCommand::Patch(Patch { content, expected_version }) => {
            let (id, patch) = content.resolve(context, server).await?;
            let expected_version = *expected_version;
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

impl Content {
    async fn resolve(&self, context: &Context, server: &Server) -> Result<(Uuid, Value), Failure> {
        let usage = |words: String| Failure::new(Exit::Usage, anyhow!(words));
        let (campaign, text) = match (&self.first, &self.text) {
            (Some(text), None) if self.file.is_none() => (None, Some(text)),
            (campaign, text) => (campaign.as_ref(), text.as_ref()),
        };
        let text = read_text(text.map(String::as_str), self.file.as_ref())?;
        let text = text.ok_or_else(|| {
            usage("give the JSON object as an argument, or a file with --file".to_owned())
        })?;
        let json = serde_json::from_str(&text).map_err(|error| {
            Failure::new(Exit::Usage, anyhow!(error).context("the given text is not valid JSON"))
        })?;
        let id = match campaign {
            Some(_) if self.named.is_given() => {
                let words = "the campaign is given twice: name it before the JSON object, or with --campaign";
                return Err(usage(words.to_owned()));
            }
            Some(given) => {
                let given: GivenCampaign =
                    given.parse().map_err(|error: NoId| usage(error.to_string()))?;
                server.campaign(&given).await?
            }
            None => self.named.id(context, server).await?,
        };
        Ok((id, json))
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
            time_cell(entry.changed_at),
            describe_label(&entry.actor),
            kind.to_owned(),
            entry.bytes.to_string(),
            entry.paths.join(" "),
        ]
    };
    format_table(
        &["VERSION", "AT (UTC)", "BY", "KIND", "BYTES", "DIFFERENT"],
        entries.iter().map(row),
    )
}
