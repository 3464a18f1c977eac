//! `dalsegno search`: search over the texts of all campaigns.

use std::ops::Range;

use clap::{Args, ValueEnum};

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    campaign_names::{CAMPAIGN, CampaignNames},
    output::{Table, short_id, text_cell, time_cell},
    server::with_server,
    words::{Moment, parse_moment},
};
use crate::{
    domain::text_query::{SnippetPart, TextHit, TextKind},
    operations::{MAX_LIMIT, SearchTexts},
};

#[derive(Debug, Args)]
pub(super) struct Search {
    /// Words to search: "exact phrase", or, and -without are supported.
    words: String,
    #[command(flatten)]
    campaign: InCampaign,
    /// Only texts of this agent. curator_2 is instance 2 of curator.
    #[arg(long)]
    agent: Option<String>,
    /// Only texts of this kind.
    #[arg(long)]
    kind: Option<KindName>,
    /// Only texts since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    /// Only texts before then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Moment>,
    /// Maximum number of texts, up to 1000.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    Task,
    Post,
    Memory,
    Message,
    Summary,
    Brief,
    Blackboard,
    Fact,
}

impl From<KindName> for TextKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Task => Self::Task,
            KindName::Post => Self::Post,
            KindName::Memory => Self::Memory,
            KindName::Message => Self::Message,
            KindName::Summary => Self::Summary,
            KindName::Brief => Self::Brief,
            KindName::Blackboard => Self::Blackboard,
            KindName::Fact => Self::Fact,
        }
    }
}

pub(super) async fn run(search: &Search, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let campaign_id = search.campaign.id_if_given(context, server).await?;
        let page = |cursor, limit| SearchTexts {
            q: search.words.clone(),
            campaign_id,
            agent: search.agent.clone(),
            kind: search.kind.map(TextKind::from),
            created_after: search.since.map(|it| it.at),
            created_before: search.until.map(|it| it.at),
            cursor,
            limit: Some(limit),
        };
        let hits = server.items(search.limit, page).await?;
        let names = CampaignNames::of_list(campaign_id, &hits, context.output, server).await;
        context.output.print_data(&hits, || format_hits(&hits, names.as_ref()));
        if hits.is_empty() && search.kind.is_some() {
            let of_any_kind = SearchTexts { kind: None, ..page(None, search.limit.min(MAX_LIMIT)) };
            // The answer is printed already: without the other kinds there is no note.
            let others = server.call(of_any_kind).await.map(|found| found.items);
            if let Some(note) = note_other_kinds(&others.unwrap_or_default()) {
                context.output.print_note(&note);
            }
        }
        Ok(Exit::Ok)
    })
    .await
}

/// Names the kinds of the texts that match without the filter of a kind.
fn note_other_kinds(hits: &[TextHit]) -> Option<String> {
    let kinds = TextKind::of_hits(hits);
    let names: Vec<_> = kinds.iter().map(|kind| format!("`{}`", kind.as_str())).collect();
    let texts = format!("texts of another kind match: {}", names.join(", "));
    match kinds.contains(&TextKind::Task) {
        _ if kinds.is_empty() => None,
        true => Some(format!("{texts}; answers are found as the results of their tasks (`task`)")),
        false => Some(texts),
    }
}

fn format_hits(hits: &[TextHit], campaigns: Option<&CampaignNames>) -> String {
    if hits.is_empty() {
        return "no text matches".to_owned();
    }
    let row = |hit: &TextHit| {
        let snippet: String = hit.snippet.iter().map(|part| part.text.as_str()).collect();
        [
            time_cell(hit.at),
            hit.kind.as_str().to_owned(),
            hit.session_id
                .filter(|_| hit.kind == TextKind::Message)
                .map_or(short_id(hit.id), short_id),
            hit.author.clone(),
            hit.campaign_id
                .zip(campaigns)
                .map_or_else(|| "-".to_owned(), |(id, names)| names.cell(id)),
            text_cell(&snippet),
        ]
    };
    let head = ["WRITTEN (UTC)", "KIND", "ID", "AUTHOR", CAMPAIGN, "TEXT"];
    let matches: Vec<_> = hits.iter().map(|hit| first_match(&hit.snippet)).collect();
    let table = Table::new(&head).leaves_out(&["AUTHOR"]).cuts_around("TEXT", &matches);
    let table = if campaigns.is_some() { table } else { table.hides(CAMPAIGN) };
    table.format(hits.iter().map(row))
}

/// Returns the characters of the first match in the cell of a snippet, from and to. The cell has one blank in place of several.
fn first_match(snippet: &[SnippetPart]) -> Range<usize> {
    let Some(place) = snippet.iter().position(|part| part.is_match) else { return 0..0 };
    let before: String = snippet[..place].iter().map(|part| part.text.as_str()).collect();
    let n_chars = |text: &str| text_cell(text).chars().count();
    let is_behind_blank = before.ends_with(char::is_whitespace) && !before.trim().is_empty();
    let start = n_chars(&before) + usize::from(is_behind_blank);
    start..start + n_chars(&snippet[place].text)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn the_first_match_is_found_in_the_cell_of_its_snippet() {
        let part = |text: &str, is_match| SnippetPart { text: text.to_owned(), is_match };
        for (before, word) in [
            ("  At \n\tthe  ", "quay"),
            ("(", "quay"),
            ("", "quay"),
            (" \n", "quay"),
            ("春の ", "港"),
        ] {
            let snippet =
                [part(before, false), part(word, true), part(" of\n", false), part("quay", true)];
            let text: String = snippet.iter().map(|part| part.text.as_str()).collect();
            let found = first_match(&snippet);
            let shown: String =
                text_cell(&text).chars().skip(found.start).take(found.len()).collect();
            assert_eq!(shown, word, "{before:?}");
        }
        assert_eq!(first_match(&[part("no match", false)]), 0..0);
    }

    #[test]
    fn the_note_names_the_kinds_that_match_and_where_answers_are() {
        let hit = |kind| TextHit {
            kind,
            id: uuid::Uuid::nil(),
            campaign_id: None,
            author: String::new(),
            at: DateTime::UNIX_EPOCH,
            snippet: Vec::new(),
            session_id: None,
            seq: None,
        };
        assert_eq!(note_other_kinds(&[]), None);
        let post = note_other_kinds(&[hit(TextKind::Post), hit(TextKind::Post)]).unwrap();
        assert_eq!(post, "texts of another kind match: `post`");
        let task = note_other_kinds(&[hit(TextKind::Post), hit(TextKind::Task)]).unwrap();
        assert!(task.starts_with("texts of another kind match: `task`, `post`; answers"), "{task}");
    }
}
