//! `dalsegno memory facts`: facts about the users for whom campaigns work.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::show::escape_invisible;
use crate::{
    cli::{
        Context, Exit, Failure,
        args::{Expiry, InCampaign, Paging},
        campaign_names::{CAMPAIGN, CampaignNames},
        output::{Table, format_fields, format_table, short_id, time_cell, time_cell_or_dash},
        server::Server,
        words::{time, time_or_dash},
    },
    domain::{
        agents::agent_name,
        audit::describe_label,
        facts::{CampaignUser, EndReason, Extraction, Fact, Source},
        ids::PartialId,
    },
    operations::{
        EditFact, FactUse, FactUses, ForgetUser, ListExtractions, ListFactUses, ListFacts, Noun,
        PutCampaignUser, RevokeFact, SearchFacts, ShowCampaignUser, ShowFact, StateFact,
        UserOfCampaign,
    },
};

/// Turns of a session in a line.
const MAX_TURNS: usize = 5;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum FactsCommand {
    /// Sets or shows the user that a campaign works for.
    User(User),
    /// Lists the valid facts about a user, the newest first.
    Ls(Ls),
    /// Shows a fact with its source.
    Show(FactArgs),
    /// Lists the last 20 sessions that were shown a fact, with their turns, the newest use first.
    ///
    /// TURNS has the turns whose calls contained the fact, among the last 50 calls of the session. `-`: the fact may be in the transcript of
    /// the session: the agent read it with `recall` or wrote it, or the session continues one that was shown it.
    Uses(FactArgs),
    /// Searches facts by words, the best match first.
    Search(Search),
    /// States a fact about a user. The facts that it contradicts end, and stay in the history.
    State(State),
    /// Changes the text of a fact.
    Edit(Edit),
    /// Revokes a fact.
    Revoke(FactArgs),
    /// Removes all facts about a user for good, including revoked ones.
    ///
    /// It lists the sessions that contain them: their transcripts stay.
    Forget(Forget),
    /// Lists the parts of conversations that were read for facts, and the results.
    Readings(Readings),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct User {
    #[command(flatten)]
    campaign: InCampaign,
    /// Name of the user in other systems: `ann@example.org`. Without it, shows the current user.
    user: Option<String>,
    /// Sets no user.
    #[arg(long, conflicts_with = "user")]
    none: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Ls {
    /// Name of the user in other systems: `ann@example.org`.
    user: String,
    /// Also revoked and expired facts.
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct FactArgs {
    /// Name of the user in other systems: `ann@example.org`.
    user: String,
    /// The id of the fact, or a unique beginning or end of it.
    fact: PartialId,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Search {
    /// Name of the user in other systems: `ann@example.org`.
    user: String,
    /// Words to search: "exact phrase", or, and -without are supported.
    words: String,
    /// Maximum number of facts, up to 200.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct State {
    /// Name of the user in other systems: `ann@example.org`.
    user: String,
    /// Attribute of the user; one fact per attribute is valid at a time.
    attribute: String,
    /// Text of the fact, in one line.
    text: String,
    #[command(flatten)]
    expiry: Expiry,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Edit {
    #[command(flatten)]
    which: FactArgs,
    /// Text of the fact, in one line.
    text: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Forget {
    /// Name of the user in other systems: `ann@example.org`.
    user: String,
    /// Confirms the removal. It cannot be undone.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Readings {
    #[command(flatten)]
    campaign: InCampaign,
    /// Maximum number of readings, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(
    command: &FactsCommand,
    context: &Context,
    server: &Server,
) -> Result<(), Failure> {
    match command {
        FactsCommand::User(user) => show_user(user, context, server).await?,
        FactsCommand::Ls(Ls { user, ended, paging }) => {
            let page =
                |cursor, limit| ListFacts { name: user.clone(), ended: *ended, cursor, limit };
            let facts = server.list(Noun::Fact, paging, page).await?;
            context.output.print_data(&facts, || format_facts(&facts));
        }
        FactsCommand::Show(FactArgs { user, fact }) => {
            let (name, fact) = (user.clone(), server.id(Noun::Fact, fact).await?);
            let fact = server.call(ShowFact { name, fact }).await?;
            context.output.print_data(&fact, || format_fact(&fact));
        }
        FactsCommand::Uses(FactArgs { user, fact }) => {
            let (name, fact) = (user.clone(), server.id(Noun::Fact, fact).await?);
            let uses = server.call(ListFactUses { name, fact }).await?;
            let names = CampaignNames::of_list(None, &uses.items, context.output, server).await;
            let names = names.unwrap_or_default();
            context.output.print_data(&uses, || format_uses(&uses, &names));
        }
        FactsCommand::Search(Search { user, words, limit }) => {
            let (name, q) = (user.clone(), words.clone());
            let hits = server.call(SearchFacts { name, q, limit: Some(*limit) }).await?.items;
            context.output.print_data(&hits, || format_facts(hits.iter().map(|hit| &hit.fact)));
        }
        FactsCommand::State(State { user, attribute, text, expiry }) => {
            let state = StateFact {
                name: user.clone(),
                attribute: attribute.clone(),
                text: text.clone(),
                expires_at: expiry.at(context)?,
            };
            let fact = server.call(state).await?;
            context.output.print_data(&fact, || format_fact(&fact));
        }
        FactsCommand::Edit(Edit { which: FactArgs { user, fact }, text }) => {
            let fact = server.id(Noun::Fact, fact).await?;
            let edit = EditFact { name: user.clone(), fact, text: text.clone() };
            let fact = server.call(edit).await?;
            context.output.print_data(&fact, || format_fact(&fact));
        }
        FactsCommand::Revoke(FactArgs { user, fact }) => {
            let (name, fact) = (user.clone(), server.id(Noun::Fact, fact).await?);
            let fact = server.call(RevokeFact { name, fact }).await?;
            context.output.print_data(&fact, || format!("fact {} is revoked", fact.id));
        }
        FactsCommand::Forget(forget) => remove(forget, context, server).await?,
        FactsCommand::Readings(readings) => {
            let id = readings.campaign.id(context, server).await?;
            let page = |cursor: Option<String>, limit| {
                let cursor = cursor.and_then(|cursor| cursor.try_into().ok());
                ListExtractions { id, cursor, limit: Some(limit) }
            };
            let read = server.items(readings.limit, page).await?;
            context.output.print_data(&read, || format_extractions(&read));
        }
    }
    Ok(())
}

async fn show_user(user: &User, context: &Context, server: &Server) -> Result<(), Failure> {
    let id = user.campaign.id(context, server).await?;
    let UserOfCampaign(set) = match (&user.user, user.none) {
        (None, false) => server.call(ShowCampaignUser { id }).await?,
        (name, _) => server.call(PutCampaignUser { id, user: name.clone() }).await?,
    };
    context.output.print_data(&set, || format_user(set.as_ref()));
    Ok(())
}

async fn remove(
    Forget { user, yes }: &Forget,
    context: &Context,
    server: &Server,
) -> Result<(), Failure> {
    if !yes {
        let words = format!(
            "nothing was done: this would permanently remove all facts about {}; confirm with --yes",
            escape_invisible(user)
        );
        return Err(Failure::new(Exit::Usage, anyhow!(words)));
    }
    let forgotten = server.call(ForgetUser { name: user.clone() }).await?;
    context.output.print_data(&forgotten, || {
        let gone = match forgotten.facts {
            1 => format!("1 fact about {user} is permanently removed"),
            n => format!("{n} facts about {user} are permanently removed"),
        };
        match forgotten.sessions.is_empty() {
            true => gone,
            false => {
                let sessions: Vec<_> = forgotten.sessions.iter().map(Uuid::to_string).collect();
                format!(
                    "{gone}\nthe transcripts of these sessions still contain them, until the sessions expire or their campaigns are erased:\n{}",
                    sessions.join("\n")
                )
            }
        }
    });
    Ok(())
}

fn format_user(user: Option<&CampaignUser>) -> String {
    match user {
        Some(user) => format!("works for {} since {}", user.user, time(user.since)),
        None => "has no user".to_owned(),
    }
}

fn format_facts<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let row = |fact: &Fact| {
        [
            short_id(fact.id),
            source(fact.source).to_owned(),
            time_cell(fact.valid_from),
            time_cell_or_dash(fact.valid_until),
            escape_invisible(&fact.attribute),
            escape_invisible(&fact.text),
        ]
    };
    let head = ["ID", "SOURCE", "SAID (UTC)", "UNTIL (UTC)", "ABOUT", "FACT"];
    Table::new(&head).leaves_out(&["UNTIL (UTC)", "SOURCE"]).format(facts.into_iter().map(row))
}

fn format_fact(fact: &Fact) -> String {
    let ended = match fact.ended_because {
        Some(EndReason::Contradicted) => "contradicted",
        Some(EndReason::Edited) => "edited",
        Some(EndReason::Revoked) => "revoked",
        Some(EndReason::Expired) => "expired",
        None => "-",
    };
    let id = |id: Option<Uuid>| id.map_or("-".to_owned(), |id| id.to_string());
    let turn = fact.session_id.zip(fact.turn);
    format_fields(&[
        ("id", fact.id.to_string()),
        ("user", fact.user.clone()),
        ("about", escape_invisible(&fact.attribute)),
        ("fact", escape_invisible(&fact.text)),
        ("source", source(fact.source).to_owned()),
        ("author", describe_label(&fact.author)),
        ("campaign", id(fact.campaign_id)),
        ("turn", turn.map_or("-".to_owned(), |(id, turn)| format!("{turn} of session {id}"))),
        ("said", time(fact.valid_from)),
        ("until", time_or_dash(fact.valid_until)),
        ("because", ended.to_owned()),
        ("replaced by", id(fact.replaced_by)),
        ("expires", time_or_dash(fact.expires_at)),
    ])
}

fn format_uses(uses: &FactUses, campaigns: &CampaignNames) -> String {
    let row = |it: &FactUse| {
        let agent = it.agent.as_deref().zip(it.instance.as_deref());
        [
            short_id(it.session_id),
            agent.map_or("-".to_owned(), |(agent, instance)| agent_name(agent, instance)),
            campaigns.cell(it.campaign_id),
            time_cell(it.last_at),
            format_turns(&it.turns),
        ]
    };
    let head = ["SESSION", "AGENT", CAMPAIGN, "LAST (UTC)", "TURNS"];
    let mut text = Table::new(&head).leaves_out(&[CAMPAIGN]).format(uses.items.iter().map(row));
    if uses.has_more {
        text.push_str("more sessions were shown this fact: the list has the last ones\n");
    }
    text
}

/// Formats the newest turns: `12, 11, 10, 9, 8 and 4 more`.
fn format_turns(turns: &[i32]) -> String {
    let shown = &turns[..turns.len().min(MAX_TURNS)];
    let numbers: Vec<String> = shown.iter().map(i32::to_string).collect();
    match turns.len() - shown.len() {
        0 if turns.is_empty() => "-".to_owned(),
        0 => numbers.join(", "),
        more => format!("{} and {more} more", numbers.join(", ")),
    }
}

fn format_extractions(read: &[Extraction]) -> String {
    let row = |it: &Extraction| {
        [
            time_cell(it.ended_at),
            it.agent.clone(),
            it.session_id.to_string(),
            format!("{}-{}", it.from_seq + 1, it.to_seq),
            it.requests.to_string(),
            it.found.to_string(),
            it.new.to_string(),
            it.reason
                .as_deref()
                .map_or("done".to_owned(), |why| format!("refused: {}", escape_invisible(why))),
        ]
    };
    let head = ["READ (UTC)", "AGENT", "SESSION", "MESSAGES", "ASKED", "FOUND", "NEW", "OUTCOME"];
    format_table(&head, read.iter().map(row))
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Extracted => "extracted",
        Source::Written => "written",
        Source::Stated => "stated",
        Source::Edited => "edited",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_newest_turns_and_the_number_of_the_others() {
        assert_eq!(format_turns(&[]), "-");
        assert_eq!(format_turns(&[5, 4, 3, 2, 1]), "5, 4, 3, 2, 1");
        assert_eq!(format_turns(&[7, 6, 5, 4, 3, 2, 1]), "7, 6, 5, 4, 3 and 2 more");
    }
}
