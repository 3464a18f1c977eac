//! `dalsegno campaign edit` and `dalsegno campaign versions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde_json::Value;

use super::{CampaignChoice, Context, Failure, ParameterFlags, Server};
use crate::{
    cli::{
        output::{format_fields, format_table, time_cell},
        sent_context::diff::{format_changes, indent},
        words::{read_text, time},
    },
    domain::{
        audit::describe_label,
        campaigns::{CampaignVersion, EditOutcome, VersionSummary},
    },
    operations::{
        CampaignDiff, CompareCampaignVersions, EditCampaign, ListCampaignVersions,
        ShowCampaignVersion, WordChange,
    },
};

/// The texts of a campaign, as options or as files.
#[derive(Debug, Args)]
pub(super) struct TextFlags {
    /// Brief: the work, as every call describes it to the model; `-` reads it from the standard input.
    #[arg(long, conflicts_with = "brief_file")]
    brief: Option<String>,
    /// File with the brief; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    brief_file: Option<PathBuf>,
    /// Tone, audience and facts of the client; `-` reads them from the standard input.
    #[arg(long, conflicts_with = "client_context_file")]
    client_context: Option<String>,
    /// File with tone, audience and facts of the client; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    client_context_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("edited").required(true).multiple(true).args(
    ["brief", "brief_file", "client_context", "client_context_file", "no_client_context", "parameters", "no_parameters"]
)))]
pub(in crate::cli) struct Edit {
    #[command(flatten)]
    campaign: CampaignChoice,
    #[command(flatten)]
    texts: TextFlags,
    /// Removes the client context.
    #[arg(long, conflicts_with_all = ["client_context", "client_context_file"])]
    no_client_context: bool,
    #[command(flatten)]
    parameters: ParameterFlags,
    /// Removes a parameter; may be repeated.
    #[arg(long = "no-parameter", value_name = "NAME")]
    no_parameters: Vec<String>,
    /// Refuses the edit unless this is the current version.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i32>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Versions {
    #[command(flatten)]
    campaign: CampaignChoice,
    /// Prints the texts of this version.
    #[arg(long, value_name = "VERSION", conflicts_with = "diff")]
    show: Option<i32>,
    /// Compares this version with another one, word by word.
    #[arg(long, value_name = "VERSION")]
    diff: Option<i32>,
    /// The other version. Default: the current one.
    #[arg(long, value_name = "VERSION", requires = "diff")]
    to: Option<i32>,
    /// Only versions before this one.
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["show", "diff"])]
    before: Option<i32>,
    /// Maximum number of versions, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

impl TextFlags {
    /// Reads the brief and the client context, as far as they are given.
    pub(super) fn read(&self) -> Result<(Option<String>, Option<String>), Failure> {
        let brief = read_text(self.brief.as_deref(), self.brief_file.as_ref())?;
        let context = self.client_context.as_deref();
        Ok((brief, read_text(context, self.client_context_file.as_ref())?))
    }
}

pub(super) async fn edit(edit: &Edit, context: &Context, server: &Server) -> Result<(), Failure> {
    let (brief, client_context) = edit.texts.read()?;
    let mut parameters = edit.parameters.object();
    parameters.extend(edit.no_parameters.iter().map(|name| (name.clone(), Value::Null)));
    let change = EditCampaign {
        id: edit.campaign.id(context, server).await?,
        brief,
        client_context: client_context.map(Some).or(edit.no_client_context.then_some(None)),
        parameters: (!parameters.is_empty()).then_some(parameters),
        expected_version: edit.expected_version,
    };
    let edited = server.call(change).await?;
    context.output.print_data(&edited, || format_edited(&edited));
    Ok(())
}

pub(super) async fn print(
    versions: &Versions,
    context: &Context,
    server: &Server,
) -> Result<(), Failure> {
    let id = versions.campaign.id(context, server).await?;
    if let Some(number) = versions.show {
        let shown = server.call(ShowCampaignVersion { id, number }).await?;
        context.output.print_data(&shown, || format_version(&shown));
    } else if let Some(from) = versions.diff {
        let diff = server.call(CompareCampaignVersions { id, from, to: versions.to }).await?;
        context.output.print_data(&diff, || format_diff(&diff));
    } else {
        let page = |cursor: Option<String>, limit| ListCampaignVersions {
            id,
            cursor: cursor.map_or(versions.before, |cursor| cursor.parse().ok()),
            limit: Some(limit),
        };
        let rows = server.items(versions.limit, page).await?;
        context.output.print_data(&rows, || format_versions(&rows));
    }
    Ok(())
}

fn format_edited(edited: &EditOutcome) -> String {
    let CampaignVersion { campaign_id, version, .. } = &edited.current;
    match edited.changed {
        true => format!(
            "campaign {campaign_id} is at version {version}: the next call of each agent contains it"
        ),
        false => format!(
            "nothing changed: campaign {campaign_id} already has this content, at version {version}"
        ),
    }
}

fn format_versions(versions: &[VersionSummary]) -> String {
    let row = |version: &VersionSummary| {
        [
            version.version.to_string(),
            time_cell(version.changed_at),
            author(version.changed_by.as_deref()),
            version.brief_bytes.to_string(),
            version.client_context_bytes.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        ]
    };
    let head = ["VERSION", "AT (UTC)", "BY", "BRIEF BYTES", "CLIENT CONTEXT BYTES"];
    format_table(&head, versions.iter().map(row))
}

fn format_version(version: &CampaignVersion) -> String {
    let fields = format_fields(&[
        ("version", version.version.to_string()),
        ("at", format!("{} UTC", time(version.changed_at))),
        ("by", author(version.changed_by.as_deref())),
    ]);
    let context = version.client_context.as_deref();
    let parameters = match version.parameters.is_empty() {
        true => String::new(),
        false => format!("{:#}", Value::Object(version.parameters.0.clone())),
    };
    format!(
        "{fields}{}{}{}",
        format_text("Brief", &version.brief),
        format_text("Client context", context.unwrap_or_default()),
        format_text("Parameters", &parameters)
    )
}

fn format_diff(diff: &CampaignDiff) -> String {
    let CampaignDiff { from, to, .. } = diff;
    let all = [&diff.brief, &diff.client_context, &diff.parameters];
    if all.iter().all(|changes| changes.is_empty()) {
        return format!("Versions {from} and {to} are the same.");
    }
    let changes = |title, words: &[WordChange]| match words {
        [] => String::new(),
        words => format_text(title, &format_changes(words)),
    };
    format!(
        "version {from} to version {to}\n{}{}{}",
        changes("Brief", &diff.brief),
        changes("Client context", &diff.client_context),
        changes("Parameters", &diff.parameters)
    )
}

fn format_text(title: &str, text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("\n{title}:\n{}\n", indent(text)),
    }
}

fn author(changed_by: Option<&str>) -> String {
    changed_by.map_or_else(|| "-".to_owned(), describe_label)
}
