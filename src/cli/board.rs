//! `dalsegno board`: reads the board of a campaign and posts to it.
//!
//! Each line of a post's text is indented, so that none can pass for the head of another post.

use std::{path::PathBuf, time::Duration};

use chrono::TimeDelta;
use clap::{ArgGroup, Args, Subcommand};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::{Output, format_table, time_cell},
    server::{Server, with_server},
    words::{parse_period, read_text, time},
};
use crate::{
    domain::{
        ids::PartialId,
        mentions::PostResult,
        posts::{self, Archive, ArchivedSender, Post},
        text::count,
    },
    operations::{AddPost, ListPosts, MAX_LIMIT, Noun, PostOrder, ShowBoardArchive},
};

#[derive(Debug, Subcommand)]
pub(super) enum BoardCommand {
    /// Prints the last posts and each new one, until Ctrl-C. With --json, one object per line.
    Tail(Tail),
    /// Posts as the operator: each agent mentioned as `@name` gets a task; without a mention, the lead does.
    Post(NewPost),
    /// Prints posts, the newest last. Archived posts are among them.
    History(History),
    /// Prints how many posts of each sender are archived, and when they were posted.
    Archive(BoardArgs),
}

#[derive(Debug, Args)]
pub(super) struct BoardArgs {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only posts that this agent sees; curator_2 is instance 2 of curator.
    #[arg(long, value_name = "AGENT")]
    viewer: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Tail {
    #[command(flatten)]
    look: BoardArgs,
    /// Number of existing posts to print first, up to 1000.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(i64).range(0..=1000))]
    lines: i64,
    /// Ends after this time: 30s, 15m, 24h.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    look: BoardArgs,
    /// Only posts before this place, the number that `board history` prints.
    #[arg(long, value_name = "PLACE", default_value_t = i64::MAX, hide_default_value = true)]
    before: i64,
    /// Maximum number of posts, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("text_given").required(true).args(["text", "text_file"])))]
pub(super) struct NewPost {
    #[command(flatten)]
    campaign: InCampaign,
    /// Text of the post; `-` reads it from the standard input.
    text: Option<String>,
    /// File with the text; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    /// Additional reader: an agent (curator_2 is instance 2 of curator), `operator` or `all`; may be repeated.
    #[arg(long, value_name = "NAME")]
    to: Vec<String>,
    /// Post that it answers: its id, or a unique beginning or end of it.
    #[arg(long, value_name = "ID")]
    reply_to: Option<PartialId>,
}

impl BoardArgs {
    /// Builds a query for the pages of posts from a place on.
    fn page(
        &self,
        id: Uuid,
        order: PostOrder,
        cursor: Option<i64>,
    ) -> impl Fn(Option<String>, i64) -> ListPosts {
        let viewer = self.viewer.clone();
        move |next, limit| ListPosts {
            id,
            viewer: viewer.clone(),
            order: Some(order),
            cursor: next.map_or(cursor, |next| next.parse().ok()),
            limit: Some(limit),
        }
    }
}

/// Pause between two polls, too short to notice.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn run(command: &BoardCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| match command {
        BoardCommand::Tail(tail) => follow(tail, context, server).await,
        BoardCommand::History(history) => print(history, context, server).await,
        BoardCommand::Archive(look) => show_archive(look, context, server).await,
        BoardCommand::Post(new) => add(new, context, server).await,
    })
    .await
}

async fn print(history: &History, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let id = history.look.campaign.id(context, server).await?;
    let page = history.look.page(id, PostOrder::Newest, Some(history.before));
    let mut posts = server.items(history.limit, page).await?;
    posts.reverse();
    context.output.print_list(&posts, "posts", format_post);
    Ok(Exit::Ok)
}

async fn show_archive(
    look: &BoardArgs,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = look.campaign.id(context, server).await?;
    let archive = server.call(ShowBoardArchive { id, viewer: look.viewer.clone() }).await?;
    context.output.print_data(&archive, || format_archive(&archive));
    Ok(Exit::Ok)
}

async fn follow(tail: &Tail, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let id = tail.look.campaign.id(context, server).await?;
    let end =
        tail.timeout.and_then(|limit| limit.to_std().ok()).map(|limit| Instant::now() + limit);
    // Reads at least one post, even with `--lines 0`: new posts are those after its place.
    let newest = tail.look.page(id, PostOrder::Newest, None);
    let there = server.items(tail.lines.max(1), newest).await?;
    let mut told = there.first().map_or(0, |last| last.seq);
    let n_lines = usize::try_from(tail.lines).unwrap_or_default();
    there.iter().take(n_lines).rev().for_each(|post| print_post(post, context.output));
    while end.is_none_or(|end| Instant::now() < end) {
        let news = tail.look.page(id, PostOrder::Oldest, Some(told));
        let posts = server.call(news(None, MAX_LIMIT)).await?.items;
        posts.iter().for_each(|post| print_post(post, context.output));
        told = posts.last().map_or(told, |last| last.seq);
        if posts.is_empty() {
            sleep(PAUSE).await;
        }
    }
    Ok(Exit::Ok)
}

async fn add(new: &NewPost, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let text = read_text(new.text.as_deref(), new.text_file.as_ref())?.unwrap_or_default();
    let id = new.campaign.id(context, server).await?;
    let reply_to = match &new.reply_to {
        Some(given) => Some(server.id(Noun::Post, given).await?),
        None => None,
    };
    let audience = Some(new.to.clone()).filter(|names| !names.is_empty());
    let posted = server.call(AddPost { id, text, audience, reply_to }).await?;
    context.output.print_data(&posted, || format_posted(&posted));
    Ok(Exit::Ok)
}

/// Describes the new post: its place, the tasks it created, and the names that are unknown.
fn format_posted(posted: &PostResult) -> String {
    let post = &posted.post;
    let to = post.audience.join(", ");
    let is = if posted.created { "is" } else { "is already" };
    let mut lines =
        vec![format!("post {} {is} at place {} of the board, for {to}", post.id, post.seq)];
    lines.extend(posted.tasks.iter().map(|one| {
        format!("{} got task {}", posts::reader(&one.agent, &one.instance), one.task_id)
    }));
    lines.extend(posted.unknown.iter().map(|unknown| match &unknown.nearest {
        Some(near) => format!("unknown name `{}`: did you mean `{near}`?", unknown.name),
        None => format!("unknown name `{}`", unknown.name),
    }));
    lines.extend(posted.notes.iter().cloned());
    lines.join("\n")
}

fn format_archive(archive: &Archive) -> String {
    if archive.posts == 0 {
        return "no posts are archived".to_owned();
    }
    let row = |sender: &ArchivedSender| {
        let ArchivedSender { sender, posts, first_at, last_at } = sender;
        [sender.clone(), posts.to_string(), time_cell(*first_at), time_cell(*last_at)]
    };
    let table = format_table(
        &["SENDER", "POSTS", "FIRST (UTC)", "LAST (UTC)"],
        archive.senders.iter().map(row),
    );
    let posts = count(archive.posts, "post is archived", "posts are archived");
    let before = archive.archived_seq + 1;
    format!("{table}\n{posts}; `dalsegno board history --before {before}` prints the last of them")
}

fn print_post(post: &Post, output: Output) {
    output.print_item(post, || format_post(post));
}

fn format_post(post: &Post) -> String {
    let answers = post.reply_to.map(|id| format!("  answers {id}")).unwrap_or_default();
    let author = post.author.as_ref().map(|author| format!("  by {author}")).unwrap_or_default();
    let text = indented(&post.text);
    format!(
        "#{}  {}  {} to {}  {}{answers}{author}\n{text}\n",
        post.seq,
        time(post.posted_at),
        post.sender,
        post.audience.join(", "),
        post.id,
    )
}

/// Indents each line. Every character that a terminal may treat as a line break starts a new line.
fn indented(text: &str) -> String {
    let is_break =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    text.trim_end().split(is_break).map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_imitates_the_header_of_a_post() {
        let text = "One.\n#9  operator to all\r#10  x\u{2028}#11  y\n";
        let lines: Vec<String> = indented(text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.starts_with("    ")), "{lines:?}");
    }
}
