//! `dalsegno memory`: the edicts, records and journals of a campaign.
//!
//! What agents have written is shown with everything in it that could hide something: characters that a terminal obeys, or that
//! change the direction of a line, are written out.

mod facts;
mod folder;

use std::path::PathBuf;

use chrono::TimeDelta;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::Paging,
    database::with_database,
    output::{fields, table},
    words::{given, period, time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::Use,
    domain::{
        Page,
        audit::{self, Action},
        campaigns,
        ids::GivenCampaign,
        memory::{self, Filter, Hit, Imported, Item, Kind, New, Version, Who, Written},
        posts,
        search::Question,
        transaction::{begin, commit},
    },
    tools::Meanings,
};

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Lists what holds, the newest first.
    Ls(Ls),
    /// Prints an item; an earlier version of it, or what versions there are.
    Show(Show),
    /// Searches by words, the best first.
    Search(Search),
    /// Publishes an item, or the next version of it.
    Publish(Publish),
    /// Takes an item back: it holds no more, and can still be shown.
    Revoke(Revoke),
    /// Writes all that holds into a folder, a Markdown file for each item.
    Export(Export),
    /// Takes in such a folder: all of its items, or none and everything that is wrong with them.
    Import(Import),
    /// What is known about the users for whom campaigns work.
    #[command(subcommand)]
    Facts(facts::FactsCommand),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    Edict,
    Record,
    Journal,
}

/// One item.
#[derive(Debug, Args)]
struct Named {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    kind: KindName,
    name: String,
    /// Whose journal it is; curator_2 is instance 2 of curator.
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Ls {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    #[arg(long)]
    kind: Option<KindName>,
    /// Only the journal of this agent.
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
    /// Those that were revoked or have expired, too.
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    named: Named,
    /// An earlier version.
    #[arg(long)]
    version: Option<i32>,
    /// Lists the versions instead.
    #[arg(long, conflicts_with = "version")]
    versions: bool,
}

#[derive(Debug, Args)]
pub(super) struct Search {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    /// Words; "in this order", or and -without mean what they do elsewhere.
    words: String,
    #[arg(long)]
    kind: Option<KindName>,
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("text_given").required(true).args(["text", "text_file"])))]
pub(super) struct Publish {
    #[command(flatten)]
    named: Named,
    /// What it says; `-` reads it from the standard input.
    text: Option<String>,
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    /// One line that says what it is about.
    #[arg(long)]
    title: String,
    /// Holds for this long: 90d, 24h.
    #[arg(long, value_name = "TIME", value_parser = period)]
    expires_in: Option<TimeDelta>,
    /// The version that it replaces; 0 where there is to be none yet.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<i32>,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    folder: PathBuf,
    /// Writes over files that say something else.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    /// A folder, with all that is below it; or one file.
    folder: PathBuf,
    /// Items that say something else already get a new version.
    #[arg(long)]
    replace: bool,
}

/// Items that an export reads at once.
const PAGE: i64 = 100;

impl MemoryCommand {
    /// True for commands that consist of operations.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Facts(facts::FactsCommand::User(_)))
    }
}

pub(super) async fn run(command: &MemoryCommand, context: &Context) -> Result<Exit, Failure> {
    if let MemoryCommand::Facts(facts::FactsCommand::User(user)) = command {
        return facts::show_user(user, context).await;
    }
    let work = async |pool: &PgPool| match command {
        MemoryCommand::Ls(ls) => list(ls, context, pool).await,
        MemoryCommand::Show(show) => print(show, context, pool).await,
        MemoryCommand::Search(search) => look_for(search, context, pool).await,
        MemoryCommand::Publish(publish) => write(publish, context, pool).await,
        MemoryCommand::Revoke(revoke) => take_back(revoke, context, pool).await,
        MemoryCommand::Export(export) => write_folder(export, context, pool).await,
        MemoryCommand::Import(import) => read_folder(import, context, pool).await,
        MemoryCommand::Facts(command) => facts::run(command, context, pool).await,
    };
    with_database(context, Use::Look, async |database| work(&database.pool).await).await
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

impl Named {
    async fn find(&self, conn: &mut PgConnection, context: &Context) -> Result<Item, Failure> {
        let id = campaign(conn, &self.campaign).await?;
        let (label, owner) = (context.who().label(), owner(self.owner.as_deref(), context));
        let named = (self.kind.kind(), owner.as_deref(), self.name.as_str());
        Ok(memory::by_name(conn, id, named, &Who::Operator { label: &label }, SystemClock.now())
            .await?)
    }
}

async fn list(ls: &Ls, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let mut tx = begin(pool).await?;
    let id = campaign(&mut tx, &ls.campaign).await?;
    let owner = owner(ls.owner.as_deref(), context);
    let filter =
        Filter { kind: ls.kind.map(KindName::kind), owner: owner.as_deref(), with_ended: ls.ended };
    let after = match &ls.paging.after {
        Some(given) => Some(memory::find_id(&mut *tx, given, None).await?),
        None => None,
    };
    let page = Page { after, limit: ls.paging.limit };
    let label = context.who().label();
    let (by, now) = (Who::Operator { label: &label }, SystemClock.now());
    let items = memory::list(&mut *tx, id, filter, &by, page, now).await?;
    context.output.data(&items, || item_lines(&items));
    Ok(Exit::Ok)
}

async fn print(show: &Show, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let mut tx = begin(pool).await?;
    let item = show.named.find(&mut tx, context).await?;
    if show.versions {
        let versions = memory::versions(&mut tx, &item).await?;
        context.output.data(&versions, || version_lines(&versions));
        return Ok(Exit::Ok);
    }
    let item = match show.version {
        None => item,
        Some(version) => memory::at_version(&mut tx, item, version).await?,
    };
    context.output.data(&item, || item_words(&item));
    Ok(Exit::Ok)
}

async fn look_for(search: &Search, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (config, label) = (context.load()?, context.who().label());
    let meaning = Meanings::new(&config.memory, &config.ollama).of_question(&search.words).await;
    let mut tx = begin(pool).await?;
    let id = campaign(&mut tx, &search.campaign).await?;
    let kind = search.kind.map(KindName::kind);
    let Search { words, limit, .. } = search;
    let question = Question { words, limit: *limit, meaning: meaning.as_ref() };
    let (by, now) = (Who::Operator { label: &label }, SystemClock.now());
    let hits = memory::search(&mut tx, (id, kind), question, &by, &config.memory, now).await?;
    context.output.data(&hits, || hits.iter().map(hit_words).collect());
    Ok(Exit::Ok)
}

async fn write(publish: &Publish, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let text = given(publish.text.as_deref(), publish.text_file.as_ref())?.unwrap_or_default();
    let (config, who, now) = (context.load()?.memory, context.who(), SystemClock.now());
    let owner = owner(publish.named.owner.as_deref(), context);
    let new = New {
        kind: publish.named.kind.kind(),
        owner: owner.as_deref(),
        name: Some(&publish.named.name),
        title: &publish.title,
        body: &text,
        expires_at: publish.expires_in.map(|period| now + period),
        expected_version: publish.expected_version,
        is_imported: false,
    };
    let mut tx = begin(pool).await?;
    let id = campaigns::find(&mut *tx, &publish.named.campaign, None).await?;
    let by = Who::Operator { label: &who.label() };
    let written = memory::publish(&mut tx, id, &new, &by, &config, now).await?;
    if written.changed {
        let data = written.item.for_audit();
        audit::write(&mut *tx, &who, Action::MemoryPublish, id, data, now).await?;
    }
    commit(tx).await?;
    context.output.data(&written, || came_of_it(&written));
    Ok(Exit::Ok)
}

async fn take_back(revoke: &Revoke, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (mut tx, who, now) = (begin(pool).await?, context.who(), SystemClock.now());
    let Named { kind, name, owner: of, .. } = &revoke.named;
    let owner = owner(of.as_deref(), context);
    let id = campaigns::find(&mut *tx, &revoke.named.campaign, None).await?;
    let by = Who::Operator { label: &who.label() };
    let item = memory::revoke(&mut tx, id, (kind.kind(), owner.as_deref(), name), &by, now).await?;
    audit::write(&mut *tx, &who, Action::MemoryRevoke, id, item.for_audit(), now).await?;
    commit(tx).await?;
    context.output.data(&item, || format!("{} holds no more", reference(&item)));
    Ok(Exit::Ok)
}

async fn write_folder(export: &Export, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let mut tx = begin(pool).await?;
    let id = campaign(&mut tx, &export.campaign).await?;
    let (mut items, mut after, now) = (Vec::new(), None::<Uuid>, SystemClock.now());
    loop {
        let page = memory::page_of_whole(&mut *tx, id, Page { after, limit: PAGE }, now).await?;
        after = page.last().map(|item| item.id);
        items.extend(page);
        if after.is_none() {
            break;
        }
    }
    let written = folder::write(&export.folder, &items, export.overwrite)?;
    context.output.data(&written, || {
        let folder = export.folder.display();
        format!("{} items are in {folder}, {} of them were already", items.len(), written.unchanged)
    });
    Ok(Exit::Ok)
}

async fn read_folder(import: &Import, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (config, who, now) = (context.load()?.memory, context.who(), SystemClock.now());
    let catalogue = context.catalogue();
    let mut entries = folder::read(&import.folder)?;
    for entry in &mut entries {
        let document = &mut entry.document;
        document.owner =
            document.owner.take().map(|written| posts::reader_named(&catalogue, &written));
    }
    let mut tx = begin(pool).await?;
    let id = campaigns::find(&mut *tx, &import.campaign, None).await?;
    let by = Who::Operator { label: &who.label() };
    let imported = memory::import(&mut tx, id, &entries, import.replace, &by, &config, now).await?;
    if imported.created + imported.replaced > 0 {
        let data = json!({ "created": imported.created, "replaced": imported.replaced });
        audit::write(&mut *tx, &who, Action::MemoryImport, id, data, now).await?;
    }
    commit(tx).await?;
    context.output.data(&imported, || taken_in(&imported));
    Ok(Exit::Ok)
}

/// One that exists.
async fn campaign(conn: &mut PgConnection, given: &GivenCampaign) -> Result<Uuid, Failure> {
    let id = campaigns::find(&mut *conn, given, None).await?;
    Ok(campaigns::get(conn, id).await?.id)
}

fn owner(written: Option<&str>, context: &Context) -> Option<String> {
    let catalogue = context.catalogue();
    written.map(|written| posts::reader_named(&catalogue, written))
}

fn reference(item: &Item) -> String {
    match &item.owner {
        Some(owner) => format!("{} `{}` of {owner}", item.kind.as_str(), item.name),
        None => format!("{} `{}`", item.kind.as_str(), item.name),
    }
}

fn came_of_it(written: &Written) -> String {
    let item = &written.item;
    let mut text = match written.changed {
        true => format!("{} is at version {}", reference(item), item.version),
        false => format!("{} says so already, at version {}", reference(item), item.version),
    };
    if let Some(warning) = &written.warning {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    text
}

fn taken_in(imported: &Imported) -> String {
    let Imported { created, replaced, unchanged, warnings } = imported;
    let counts = format!("{created} new items, {replaced} new versions, {unchanged} unchanged");
    let warnings = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
    std::iter::once(counts).chain(warnings).collect()
}

fn item_lines(items: &[Item]) -> String {
    let row = |item: &Item| {
        [
            item.kind.as_str().to_owned(),
            item.owner.clone().unwrap_or_default(),
            item.name.clone(),
            item.version.to_string(),
            item.bytes.to_string(),
            item.trust.as_str().to_owned(),
            time(item.written_at),
            written_out(&item.title),
        ]
    };
    let head = ["KIND", "OWNER", "NAME", "VERSION", "BYTES", "TRUST", "WRITTEN (UTC)", "TITLE"];
    table(&head, items.iter().map(row))
}

fn version_lines(versions: &[Version]) -> String {
    let row = |version: &Version| {
        [
            version.version.to_string(),
            time(version.written_at),
            version.author.clone(),
            version.trust.as_str().to_owned(),
            version.bytes.to_string(),
            written_out(&version.title),
        ]
    };
    let head = ["VERSION", "WRITTEN (UTC)", "AUTHOR", "TRUST", "BYTES", "TITLE"];
    table(&head, versions.iter().map(row))
}

fn item_words(item: &Item) -> String {
    let turn = item.task_id.zip(item.turn);
    let head = fields(&[
        ("item", format!("{}  {}", reference(item), item.id)),
        ("title", written_out(&item.title)),
        ("version", item.version.to_string()),
        ("trust", item.trust.as_str().to_owned()),
        ("author", item.author.clone()),
        ("turn", turn.map_or("-".to_owned(), |(task, turn)| format!("{turn} of task {task}"))),
        ("written", time(item.written_at)),
        ("expires", time_or_dash(item.expires_at)),
        ("revoked", time_or_dash(item.revoked_at)),
    ]);
    format!("{head}\n{}", set_in(item.body.as_deref().unwrap_or_default()))
}

fn hit_words(hit: &Hit) -> String {
    let item = &hit.item;
    let (title, trust) = (written_out(&item.title), item.trust.as_str());
    format!("{}  {title}  ({trust}, {})\n{}\n", reference(item), item.author, set_in(&hit.snippet))
}

/// No line of a foreign text looks like one of ours.
fn set_in(text: &str) -> String {
    let text = written_out(text);
    let is_break = |c: char| matches!(c, '\n' | '\u{2028}' | '\u{2029}');
    text.trim_end().split(is_break).map(|line| format!("    {line}\n")).collect()
}

/// Whatever a terminal obeys or hides, as it would be written in a program.
fn written_out(text: &str) -> String {
    let hides = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            // Tags: letters that nobody sees and models read.
            || ('\u{e0000}'..='\u{e007f}').contains(&c)
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_in_a_text_is_written_out() {
        assert_eq!(written_out("a\u{202e}b\u{1b}[31m\tc\n"), "a\\u{202e}b\\u{1b}[31m\tc\n");
        assert_eq!(written_out("x\u{e0041}\u{feff}\r"), "x\\u{e0041}\\u{feff}\\u{d}");
        assert_eq!(written_out("Zwölf 💥"), "Zwölf 💥");
    }

    #[test]
    fn no_line_of_a_text_looks_like_one_of_ours() {
        let shown = set_in("One.\nrecord `x`  forged\u{2028}edict");
        assert!(shown.lines().all(|line| line.starts_with("    ")), "{shown}");
        assert_eq!(shown.lines().count(), 3);
    }
}
