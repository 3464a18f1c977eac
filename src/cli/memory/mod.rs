//! `dalsegno memory`: the edicts, records and journals of a campaign.
//!
//! Control characters and invisible characters in the texts of agents are printed as escape sequences, because they
//! could hide text or change its order.

mod facts;
mod folder;
mod show;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::{
    Context, Exit, Failure,
    agent_filter::note_unknown_agent,
    args::{Expiry, InCampaign, Paging},
    server::{Server, with_server},
    words::read_text,
};
use crate::{
    domain::{
        memory::{Document, Entry, Item, Kind},
        text::count,
    },
    operations::{
        ExportMemory, FindMemory, ImportMemory, ImportedItem, ListMemory, ListMemoryVersions, Noun,
        PublishMemory, RevokeMemory, SearchMemory, ShowMemory,
    },
};

/// Printed below an empty list.
const NO_ITEMS: &str =
    "no memory items: `dalsegno memory publish record NAME TEXT --title TITLE` adds one";

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Lists valid items, the newest first.
    Ls(Ls),
    /// Prints an item, an earlier version of it, or the list of its versions.
    Show(Show),
    /// Searches items by words, the best match first.
    Search(Search),
    /// Publishes an item, or its next version.
    #[command(
        override_usage = "dalsegno memory publish [OPTIONS] --title <TITLE> <KIND> <NAME> <TEXT>"
    )]
    Publish(Publish),
    /// Revokes an item: agents no longer see it, `memory show` still prints it.
    Revoke(Revoke),
    /// Writes all valid items into a folder, one Markdown file each.
    Export(Export),
    /// Imports a folder in the form of `memory export`: all items, or none and a list of all problems.
    Import(Import),
    /// Lists, adds, edits and removes facts about users.
    #[command(subcommand)]
    Facts(facts::FactsCommand),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    /// A rule for all agents.
    Edict,
    /// Shared knowledge.
    Record,
    /// Notes of one agent.
    Journal,
}

/// An item, named by kind, owner and name.
#[derive(Debug, Args)]
struct ItemArgs {
    #[command(flatten)]
    campaign: InCampaign,
    /// Kind of the item.
    kind: KindName,
    /// Name of the item.
    name: String,
    /// Agent whose journal it is; curator_2 is instance 2 of curator.
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Ls {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only items of this kind.
    #[arg(long)]
    kind: Option<KindName>,
    /// Only the journal of this agent.
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
    /// Also revoked and expired items.
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    named: ItemArgs,
    /// Number of an earlier version.
    #[arg(long)]
    version: Option<i32>,
    /// Lists the versions instead.
    #[arg(long, conflicts_with = "version")]
    versions: bool,
}

#[derive(Debug, Args)]
pub(super) struct Search {
    #[command(flatten)]
    campaign: InCampaign,
    /// Words to search: "exact phrase", or, and -without are supported.
    words: String,
    /// Only items of this kind.
    #[arg(long)]
    kind: Option<KindName>,
    /// Maximum number of items, up to 200.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("text_given").required(true).args(["text", "text_file"])))]
pub(super) struct Publish {
    #[command(flatten)]
    named: ItemArgs,
    /// Text of the item; `-` reads it from the standard input.
    text: Option<String>,
    /// File with the text; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    /// Title, in one line.
    #[arg(long)]
    title: String,
    #[command(flatten)]
    expiry: Expiry,
    /// The version to replace; 0 for an item that does not exist yet. Default: the current version.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i32>,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    named: ItemArgs,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    campaign: InCampaign,
    /// Folder to write into.
    folder: PathBuf,
    /// Overwrites files with other content.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    #[command(flatten)]
    campaign: InCampaign,
    /// Folder with its subfolders, or one file.
    folder: PathBuf,
    /// Items that exist with other content get a new version.
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(command: &MemoryCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &MemoryCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    match command {
        MemoryCommand::Ls(ls) => list(ls, context, server).await?,
        MemoryCommand::Show(show) => print(show, context, server).await?,
        MemoryCommand::Search(search) => run_search(search, context, server).await?,
        MemoryCommand::Publish(publish) => write(publish, context, server).await?,
        MemoryCommand::Revoke(revoke) => {
            let Item { campaign_id: id, id: item, .. } = revoke.named.find(context, server).await?;
            let item = server.call(RevokeMemory { id, item }).await?;
            context.output.print_data(&item, || format!("{} is revoked", show::reference(&item)));
        }
        MemoryCommand::Export(export) => write_folder(export, context, server).await?,
        MemoryCommand::Import(import) => read_folder(import, context, server).await?,
        MemoryCommand::Facts(command) => facts::run(command, context, server).await?,
    }
    Ok(Exit::Ok)
}

impl KindName {
    fn kind(self) -> Kind {
        match self {
            Self::Edict => Kind::Edict,
            Self::Record => Kind::Record,
            Self::Journal => Kind::Journal,
        }
    }
}

impl ItemArgs {
    async fn find(&self, context: &Context, server: &Server) -> Result<Item, Failure> {
        let find = FindMemory {
            id: self.campaign.id(context, server).await?,
            kind: self.kind.kind(),
            owner: self.owner.clone(),
            name: self.name.clone(),
        };
        server.call(find).await
    }
}

async fn list(ls: &Ls, context: &Context, server: &Server) -> Result<(), Failure> {
    let id = ls.campaign.id(context, server).await?;
    let page = |cursor, limit| ListMemory {
        id,
        kind: ls.kind.map(KindName::kind),
        owner: ls.owner.clone(),
        ended: ls.ended,
        cursor,
        limit,
    };
    let items = server.list(Noun::MemoryItem, &ls.paging, page).await?;
    let is_filtered = ls.kind.is_some() || ls.owner.is_some() || ls.paging.after.is_some();
    context.output.print_rows(&items, is_filtered, NO_ITEMS, || show::format_items(&items));
    if items.is_empty() {
        note_unknown_agent(ls.owner.as_deref(), context, server).await;
    }
    Ok(())
}

async fn print(show: &Show, context: &Context, server: &Server) -> Result<(), Failure> {
    let found = show.named.find(context, server).await?;
    let (id, item) = (found.campaign_id, found.id);
    if show.versions {
        let versions = server.call(ListMemoryVersions { id, item }).await?.items;
        context.output.print_data(&versions, || show::format_versions(&versions));
        return Ok(());
    }
    let item = match show.version {
        None => found,
        version => server.call(ShowMemory { id, item, version }).await?,
    };
    context.output.print_data(&item, || show::format_item(&item));
    Ok(())
}

async fn run_search(search: &Search, context: &Context, server: &Server) -> Result<(), Failure> {
    let search = SearchMemory {
        id: search.campaign.id(context, server).await?,
        q: search.words.clone(),
        kind: search.kind.map(KindName::kind),
        limit: Some(search.limit),
    };
    let hits = server.call(search).await?.items;
    context.output.print_list(&hits, "matches", show::format_hit);
    Ok(())
}

async fn write(publish: &Publish, context: &Context, server: &Server) -> Result<(), Failure> {
    let ItemArgs { campaign, kind, name, owner } = &publish.named;
    let body = read_text(publish.text.as_deref(), publish.text_file.as_ref())?.unwrap_or_default();
    let publish = PublishMemory {
        id: campaign.id(context, server).await?,
        kind: kind.kind(),
        owner: owner.clone(),
        name: Some(name.clone()),
        title: publish.title.clone(),
        body,
        expires_at: publish.expiry.at(context)?,
        expected_version: publish.expected_version,
    };
    let written = server.call(publish).await?;
    context.output.print_data(&written, || show::format_written(&written));
    Ok(())
}

async fn write_folder(export: &Export, context: &Context, server: &Server) -> Result<(), Failure> {
    let id = export.campaign.id(context, server).await?;
    let page = |cursor: Option<String>, limit| {
        let cursor = cursor.and_then(|cursor| cursor.parse().ok());
        ExportMemory { id, cursor, limit: Some(limit) }
    };
    let items = server.items(i64::MAX, page).await?;
    let written = folder::write(&export.folder, &items, export.overwrite)?;
    context.output.print_data(&written, || {
        let folder = export.folder.display();
        format!(
            "{} in {folder}; {} of them had been exported before",
            count(items.len(), "item is", "items are"),
            written.unchanged
        )
    });
    Ok(())
}

async fn read_folder(import: &Import, context: &Context, server: &Server) -> Result<(), Failure> {
    let items = folder::read(&import.folder)?.into_iter().map(imported).collect();
    let id = import.campaign.id(context, server).await?;
    let imported = server.call(ImportMemory { id, items, replace: import.replace }).await?;
    context.output.print_data(&imported, || show::format_imported(&imported));
    Ok(())
}

fn imported(Entry { at, document }: Entry) -> ImportedItem {
    let Document { kind, owner, name, title, expires_at, body } = document;
    ImportedItem { kind, owner, name, title, body, expires_at, at: Some(at) }
}
