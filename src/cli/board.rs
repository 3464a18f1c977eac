//! `dalsegno board`: what was said on the board of a campaign, and saying something there.
//!
//! Every line of a foreign text is set in, so that none looks like the head of another post.

use std::{path::PathBuf, time::Duration};

use chrono::TimeDelta;
use clap::{ArgGroup, Args, Subcommand};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::Output,
    server::{Server, with_server},
    words::{given, period, time},
};
use crate::{
    domain::{
        ids::Given,
        mentions::Posted,
        posts::{self, Post},
    },
    operations::{AddPost, ListPosts, MAX_LIMIT, Noun, PostOrder},
};

#[derive(Debug, Subcommand)]
pub(super) enum BoardCommand {
    /// Prints the last posts, and each new one as it comes, until Ctrl-C. With --json, one object per line.
    Tail(Tail),
    /// Posts as the operator. Whom the text mentions as `@name` gets a task; without a mention, the lead.
    Post(NewPost),
    /// Prints posts, the newest last.
    History(History),
}

#[derive(Debug, Args)]
struct Look {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only what this agent sees: its name; curator_2 is instance 2 of curator.
    #[arg(long, value_name = "AGENT")]
    viewer: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Tail {
    #[command(flatten)]
    look: Look,
    /// How many of those that are there already.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(i64).range(0..=1000))]
    lines: i64,
    /// Ends after this time.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    look: Look,
    /// Only those in front of this place.
    #[arg(long, value_name = "PLACE", default_value_t = i64::MAX, hide_default_value = true)]
    before: i64,
    /// Lists at most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("text_given").required(true).args(["text", "text_file"])))]
pub(super) struct NewPost {
    #[command(flatten)]
    campaign: InCampaign,
    /// What is said; `-` reads it from the standard input.
    text: Option<String>,
    /// File with what is said.
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    /// Who sees it besides those whom it mentions: an agent (curator_2 is instance 2 of curator), `operator` or `all`. May be repeated.
    #[arg(long, value_name = "NAME")]
    to: Vec<String>,
    /// The post that it answers: its id, or the beginning or end of that.
    #[arg(long, value_name = "ID")]
    reply_to: Option<Given>,
}

impl Look {
    /// Reads posts from a place on.
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

/// Between two looks. A person does not notice it.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn run(command: &BoardCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| match command {
        BoardCommand::Tail(tail) => follow(tail, context, server).await,
        BoardCommand::History(history) => print(history, context, server).await,
        BoardCommand::Post(new) => add(new, context, server).await,
    })
    .await
}

async fn print(history: &History, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let id = history.look.campaign.id(context, server).await?;
    let page = history.look.page(id, PostOrder::Newest, Some(history.before));
    let mut posts = server.items(history.limit, page).await?;
    posts.reverse();
    context.output.data(&posts, || posts.iter().map(words).collect());
    Ok(Exit::Ok)
}

async fn follow(tail: &Tail, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let id = tail.look.campaign.id(context, server).await?;
    let end =
        tail.timeout.and_then(|limit| limit.to_std().ok()).map(|limit| Instant::now() + limit);
    // One at least: the place of the last one is where news begin.
    let newest = tail.look.page(id, PostOrder::Newest, None);
    let there = server.items(tail.lines.max(1), newest).await?;
    let mut told = there.first().map_or(0, |last| last.seq);
    let n_lines = usize::try_from(tail.lines).unwrap_or_default();
    there.iter().take(n_lines).rev().for_each(|post| tell(post, context.output));
    while end.is_none_or(|end| Instant::now() < end) {
        let news = tail.look.page(id, PostOrder::Oldest, Some(told));
        let posts = server.call(news(None, MAX_LIMIT)).await?.items;
        posts.iter().for_each(|post| tell(post, context.output));
        told = posts.last().map_or(told, |last| last.seq);
        if posts.is_empty() {
            sleep(PAUSE).await;
        }
    }
    Ok(Exit::Ok)
}

async fn add(new: &NewPost, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let text = given(new.text.as_deref(), new.text_file.as_ref())?.unwrap_or_default();
    let id = new.campaign.id(context, server).await?;
    let reply_to = match &new.reply_to {
        Some(given) => Some(server.id(Noun::Post, given).await?),
        None => None,
    };
    let audience = Some(new.to.clone()).filter(|names| !names.is_empty());
    let posted = server.call(AddPost { id, text, audience, reply_to }).await?;
    context.output.data(&posted, || came_of_it(&posted));
    Ok(Exit::Ok)
}

/// Where the post is, who was asked, and what was not done.
fn came_of_it(posted: &Posted) -> String {
    let post = &posted.post;
    let to = post.audience.join(", ");
    let is = if posted.created { "is" } else { "is already" };
    let mut lines =
        vec![format!("post {} {is} at place {} of the board, for {to}", post.id, post.seq)];
    lines.extend(posted.tasks.iter().map(|one| {
        format!("{} was asked: task {}", posts::reader(&one.agent, &one.instance), one.task_id)
    }));
    lines.extend(posted.unknown.iter().map(|unknown| match &unknown.nearest {
        Some(near) => format!("nobody is called `{}`: did you mean `{near}`?", unknown.name),
        None => format!("nobody is called `{}`", unknown.name),
    }));
    lines.extend(posted.notes.iter().cloned());
    lines.join("\n")
}

fn tell(post: &Post, output: Output) {
    output.last(post, || words(post));
}

fn words(post: &Post) -> String {
    let answers = post.reply_to.map(|id| format!("  answers {id}")).unwrap_or_default();
    let text = indented(&post.text);
    format!(
        "#{}  {}  {} to {}  {}{answers}\n{text}\n",
        post.seq,
        time(post.posted_at),
        post.sender,
        post.audience.join(", "),
        post.id,
    )
}

/// Whatever a terminal may take for the end of a line begins one here.
fn indented(text: &str) -> String {
    let is_break =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    text.trim_end().split(is_break).map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_looks_like_the_head_of_a_post() {
        let text = "One.\n#9  operator to all\r#10  x\u{2028}#11  y\n";
        let lines: Vec<String> = indented(text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.starts_with("    ")), "{lines:?}");
    }
}
