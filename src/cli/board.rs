//! `dalsegno board`: what was said on the board of a campaign, and saying something there.
//!
//! Every line of a foreign text is set in, so that none looks like the head of another post.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    database::with_database,
    output::Output,
    server::{Server, with_server},
    words::{given, time},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        agents::Catalogue,
        audit::{self, Action},
        campaigns,
        ids::{Given, GivenCampaign},
        mentions::{self, Posted},
        posts::{self, Post},
        transaction::{begin, commit},
    },
    operations::{ListPosts, MAX_LIMIT, PostOrder},
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
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
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
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    look: Look,
    /// Only those in front of this place.
    #[arg(long, value_name = "PLACE", default_value_t = i64::MAX, hide_default_value = true)]
    before: i64,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("text_given").required(true).args(["text", "text_file"])))]
pub(super) struct NewPost {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    /// What is said; `-` reads it from the standard input.
    text: Option<String>,
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    /// Who sees it besides those whom it mentions: an agent (curator_2 is instance 2 of curator), `operator` or `all`. May be repeated.
    #[arg(long, value_name = "NAME")]
    to: Vec<String>,
    /// The post that it answers: its id, or the beginning or end of that.
    #[arg(long, value_name = "ID")]
    reply_to: Option<Given>,
    /// The same key and question give the same post again; another question is a conflict.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl BoardCommand {
    /// True for commands that consist of operations.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(self, Self::Post(_))
    }
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
    let output = context.output;
    match command {
        BoardCommand::Tail(tail) => {
            with_server(context, async |server| follow(tail, output, server).await).await
        }
        BoardCommand::History(history) => {
            with_server(context, async |server| print(history, output, server).await).await
        }
        BoardCommand::Post(new) => {
            let work = async |database: &Database| add(new, context, &database.pool).await;
            with_database(context, Use::Look, work).await
        }
    }
}

async fn print(history: &History, output: Output, server: &Server) -> Result<Exit, Failure> {
    let id = server.campaign(&history.look.campaign).await?;
    let page = history.look.page(id, PostOrder::Newest, Some(history.before));
    let mut posts = server.items(history.limit, page).await?;
    posts.reverse();
    output.data(&posts, || posts.iter().map(words).collect());
    Ok(Exit::Ok)
}

async fn follow(tail: &Tail, output: Output, server: &Server) -> Result<Exit, Failure> {
    let id = server.campaign(&tail.look.campaign).await?;
    let end = tail.timeout.map(|secs| Instant::now() + Duration::from_secs(secs));
    // One at least: the place of the last one is where news begin.
    let newest = tail.look.page(id, PostOrder::Newest, None);
    let there = server.items(tail.lines.max(1), newest).await?;
    let mut told = there.first().map_or(0, |last| last.seq);
    let n_lines = usize::try_from(tail.lines).unwrap_or_default();
    there.iter().take(n_lines).rev().for_each(|post| tell(post, output));
    while end.is_none_or(|end| Instant::now() < end) {
        let news = tail.look.page(id, PostOrder::Oldest, Some(told));
        let posts = server.call(news(None, MAX_LIMIT)).await?.items;
        posts.iter().for_each(|post| tell(post, output));
        told = posts.last().map_or(told, |last| last.seq);
        if posts.is_empty() {
            sleep(PAUSE).await;
        }
    }
    Ok(Exit::Ok)
}

async fn add(new: &NewPost, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let text = given(new.text.as_deref(), new.text_file.as_ref())?.unwrap_or_default();
    let catalogue = catalogue(context)?;
    let (config, who) = (context.load()?, context.who());
    let (mut tx, now) = (begin(pool).await?, SystemClock.now());
    let campaign_id = campaigns::find(&mut *tx, &new.campaign, None).await?;
    let reply_to = match &new.reply_to {
        Some(given) => Some(posts::find(&mut *tx, given, None).await?),
        None => None,
    };
    let asked = mentions::Asked {
        campaign_id,
        text: &text,
        to: Some(new.to.as_slice()).filter(|names| !names.is_empty()),
        reply_to,
        idempotency_key: new.idempotency_key.as_deref(),
        added_by: &who.label(),
    };
    let limits = (&config.mentions, &config.tasks);
    let posted = mentions::post(&mut tx, &catalogue, limits, &asked, now).await?;
    if !posted.created {
        context.output.data(&posted, || came_of_it(&posted));
        return Ok(Exit::Ok);
    }
    let post = &posted.post;
    let data = json!({ "post_id": post.id, "seq": post.seq, "audience": post.audience });
    audit::write(&mut *tx, &who, Action::PostAdd, campaign_id, data, now).await?;
    commit(tx).await?;
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

fn catalogue(context: &Context) -> Result<Catalogue, Failure> {
    context.agents(&context.load()?.agents)
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
