//! `dalsegno memory facts`: what is known about the users for whom campaigns work.

use anyhow::anyhow;
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{campaign, written_out};
use crate::{
    cli::{
        Context, Exit, Failure,
        args::Paging,
        output::{fields, table},
        server::with_server,
        words::{period, time, time_or_dash},
    },
    clock::{Clock as _, SystemClock},
    domain::{
        Page,
        audit::{self, Action},
        facts::{self, CampaignUser, Ended, Extraction, Fact, Filter, Hit, Source},
        ids::{Given, GivenCampaign, short},
        memory,
        search::Question,
        transaction::{begin, commit},
    },
    operations::{PutCampaignUser, ShowCampaignUser, UserOfCampaign},
    tools::Meanings,
};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum FactsCommand {
    /// Says for whom a campaign works: whoever asks in it asks for this user.
    User(User),
    /// Lists what holds of a user, the newest first.
    Ls(Ls),
    /// Prints a fact with where it comes from.
    Show(Which),
    /// Searches by words, the best first.
    Search(Search),
    /// States a fact: what it contradicts is closed, and stays with its time.
    State(State),
    /// Puts other words in the place of a fact.
    Edit(Edit),
    /// Has a fact hold no more.
    Revoke(Which),
    /// Removes all facts about a user, those too that hold no more, for good, and says which sessions know of them: what was said there stays.
    Forget(Forget),
    /// Lists which stretches of conversations were read for facts, and what came of it.
    Readings(Readings),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct User {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    /// As other systems call them: `ann@example.org`. Without it, prints who it is.
    user: Option<String>,
    /// For nobody in particular.
    #[arg(long, conflicts_with = "user")]
    nobody: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Ls {
    user: String,
    /// Those that hold no more, too.
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Which {
    user: String,
    /// Its id, or the beginning or end of that.
    fact: Given,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Search {
    user: String,
    /// Words; "in this order", or and -without mean what they do elsewhere.
    words: String,
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct State {
    user: String,
    /// What of the user it is about: one fact of it holds at a time.
    attribute: String,
    /// One line.
    text: String,
    /// Holds for this long: 90d, 24h.
    #[arg(long, value_name = "TIME", value_parser = period)]
    expires_in: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Edit {
    #[command(flatten)]
    which: Which,
    /// One line.
    text: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Forget {
    user: String,
    /// Really do it.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Readings {
    /// The campaign: its name, its id, or the beginning or end of that.
    campaign: GivenCampaign,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

/// The command that consists of operations.
pub(super) async fn show_user(user: &User, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let id = server.campaign(&user.campaign).await?;
        let UserOfCampaign(set) = match (&user.user, user.nobody) {
            (None, false) => server.call(ShowCampaignUser { id }).await?,
            (name, _) => server.call(PutCampaignUser { id, user: name.clone() }).await?,
        };
        context.output.data(&set, || whose(set.as_ref()));
        Ok(Exit::Ok)
    })
    .await
}

pub(super) async fn run(
    command: &FactsCommand,
    context: &Context,
    pool: &PgPool,
) -> Result<Exit, Failure> {
    match command {
        FactsCommand::User(user) => show_user(user, context).await,
        FactsCommand::Ls(ls) => list(ls, context, pool).await,
        FactsCommand::Show(which) => {
            let id = facts::find(pool, &which.fact, None).await?;
            let fact = facts::get(pool, &which.user, id).await?;
            context.output.data(&fact, || fact_words(&fact));
            Ok(Exit::Ok)
        }
        FactsCommand::Search(search) => look_for(search, context, pool).await,
        FactsCommand::State(state) => write(state, context, pool).await,
        FactsCommand::Edit(edit) => change(edit, context, pool).await,
        FactsCommand::Revoke(which) => take_back(which, context, pool).await,
        FactsCommand::Forget(forget) => remove(forget, context, pool).await,
        FactsCommand::Readings(readings) => {
            let mut tx = begin(pool).await?;
            let id = campaign(&mut tx, &readings.campaign).await?;
            let page = Page { after: None, limit: readings.limit };
            let read = facts::extractions(&mut *tx, id, page).await?;
            context.output.data(&read, || reading_lines(&read));
            Ok(Exit::Ok)
        }
    }
}

async fn list(ls: &Ls, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let after = match &ls.paging.after {
        Some(given) => Some(facts::find(pool, given, None).await?),
        None => None,
    };
    let page = Page { after, limit: ls.paging.limit };
    let filter = Filter { with_ended: ls.ended };
    let facts = facts::list(pool, &ls.user, filter, page, SystemClock.now()).await?;
    context.output.data(&facts, || fact_lines(&facts));
    Ok(Exit::Ok)
}

async fn look_for(search: &Search, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (config, now) = (context.load()?, SystemClock.now());
    let meaning = Meanings::new(&config.memory, &config.ollama).of_question(&search.words).await;
    let Search { user, words, limit, .. } = search;
    let question = Question { words, limit: *limit, meaning: meaning.as_ref() };
    let mut tx = begin(pool).await?;
    let hits = facts::search(&mut tx, user, question, &config.memory.language, now).await?;
    let facts = |hits: &[Hit]| hits.iter().map(|hit| hit.fact.clone()).collect::<Vec<_>>();
    context.output.data(&hits, || fact_lines(&facts(&hits)));
    Ok(Exit::Ok)
}

async fn write(state: &State, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (config, who, now) = (context.load()?, context.who(), SystemClock.now());
    let what = (state.user.as_str(), state.attribute.as_str(), state.text.as_str());
    let (end, by) = (state.expires_in.map(|period| now + period), who.label());
    let mut tx = begin(pool).await?;
    let settings = (&config.facts, config.memory.language.as_str());
    let fact = facts::state(&mut tx, what, end, &by, settings, now).await?;
    audit::write(&mut *tx, &who, Action::FactState, fact.id, fact.for_audit(), now).await?;
    memory::request_embeddings(&mut tx, &config.memory).await?;
    commit(tx).await?;
    context.output.data(&fact, || fact_words(&fact));
    Ok(Exit::Ok)
}

async fn change(edit: &Edit, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (config, who, now) = (context.load()?, context.who(), SystemClock.now());
    let Which { user, fact: given } = &edit.which;
    let settings = (&config.facts, config.memory.language.as_str());
    let mut tx = begin(pool).await?;
    let id = facts::find(&mut *tx, given, None).await?;
    let fact = facts::edit(&mut tx, (user, id), &edit.text, &who.label(), settings, now).await?;
    audit::write(&mut *tx, &who, Action::FactEdit, id, fact.for_audit(), now).await?;
    memory::request_embeddings(&mut tx, &config.memory).await?;
    commit(tx).await?;
    context.output.data(&fact, || fact_words(&fact));
    Ok(Exit::Ok)
}

async fn take_back(which: &Which, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    let (mut tx, who, now) = (begin(pool).await?, context.who(), SystemClock.now());
    let id = facts::find(&mut *tx, &which.fact, None).await?;
    let fact = facts::revoke(&mut tx, &which.user, id, now).await?;
    audit::write(&mut *tx, &who, Action::FactRevoke, fact.id, fact.for_audit(), now).await?;
    commit(tx).await?;
    context.output.data(&fact, || format!("fact {} holds no more", fact.id));
    Ok(Exit::Ok)
}

async fn remove(forget: &Forget, context: &Context, pool: &PgPool) -> Result<Exit, Failure> {
    if !forget.yes {
        let words = format!(
            "all facts about {} would be removed for good; nothing was done: say --yes",
            written_out(&forget.user)
        );
        return Err(Failure::new(Exit::Usage, anyhow!(words)));
    }
    let (mut tx, who, now) = (begin(pool).await?, context.who(), SystemClock.now());
    let forgotten = facts::forget(&mut tx, &forget.user, now).await?;
    let data = json!({ "facts": forgotten.facts });
    audit::write(&mut *tx, &who, Action::UserForget, &forget.user, data, now).await?;
    commit(tx).await?;
    context.output.data(&forgotten, || {
        let gone = format!("{} facts about {} are gone, for good", forgotten.facts, forget.user);
        match forgotten.sessions.is_empty() {
            true => gone,
            false => {
                let sessions: Vec<_> = forgotten.sessions.iter().map(Uuid::to_string).collect();
                format!(
                    "{gone}\nwhat was said stays in the transcripts of these sessions, until they expire or their campaigns are erased:\n{}",
                    sessions.join("\n")
                )
            }
        }
    });
    Ok(Exit::Ok)
}

fn whose(user: Option<&CampaignUser>) -> String {
    match user {
        Some(user) => format!("works for {} since {}", user.user, time(user.since)),
        None => "works for nobody in particular".to_owned(),
    }
}

fn fact_lines(facts: &[Fact]) -> String {
    let row = |fact: &Fact| {
        [
            short(fact.id),
            source(fact.source).to_owned(),
            time(fact.valid_from),
            time_or_dash(fact.valid_until),
            written_out(&fact.attribute),
            written_out(&fact.text),
        ]
    };
    table(&["ID", "SOURCE", "SAID", "UNTIL", "ABOUT", "FACT"], facts.iter().map(row))
}

fn fact_words(fact: &Fact) -> String {
    let ended = match fact.ended_because {
        Some(Ended::Contradicted) => "contradicted",
        Some(Ended::Edited) => "edited",
        Some(Ended::Revoked) => "revoked",
        None => "-",
    };
    let id = |id: Option<Uuid>| id.map_or("-".to_owned(), |id| id.to_string());
    let turn = fact.session_id.zip(fact.turn);
    fields(&[
        ("id", fact.id.to_string()),
        ("user", fact.user.clone()),
        ("about", written_out(&fact.attribute)),
        ("fact", written_out(&fact.text)),
        ("source", source(fact.source).to_owned()),
        ("author", fact.author.clone()),
        ("campaign", id(fact.campaign_id)),
        ("turn", turn.map_or("-".to_owned(), |(id, turn)| format!("{turn} of session {id}"))),
        ("said", time(fact.valid_from)),
        ("until", time_or_dash(fact.valid_until)),
        ("because", ended.to_owned()),
        ("replaced by", id(fact.replaced_by)),
        ("expires", time_or_dash(fact.expires_at)),
    ])
}

fn reading_lines(read: &[Extraction]) -> String {
    let row = |it: &Extraction| {
        [
            time(it.ended_at),
            it.agent.clone(),
            it.session_id.to_string(),
            format!("{}-{}", it.from_seq + 1, it.to_seq),
            it.requests.to_string(),
            it.found.to_string(),
            it.new.to_string(),
            it.reason
                .as_deref()
                .map_or("done".to_owned(), |why| format!("refused: {}", written_out(why))),
        ]
    };
    let head = ["READ", "AGENT", "SESSION", "MESSAGES", "ASKED", "FOUND", "NEW", "OUTCOME"];
    table(&head, read.iter().map(row))
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Extracted => "extracted",
        Source::Stated => "stated",
        Source::Edited => "edited",
    }
}
