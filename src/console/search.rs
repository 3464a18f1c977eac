//! The search over the texts of all campaigns, with its filters in the URL.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{
        campaign_id, counted, empty, icon, next_page, optional, section, shell_word, title,
        url_text,
    },
    range::TimeRange,
    users,
};
use crate::{
    domain::text_query::{SnippetPart, TextHit, TextKind},
    operations::{Listing, Refusal, SearchTexts},
};

const HERE: &str = "/search";
/// Hits of a page.
const MAX_HITS: i64 = 20;

/// Words and filters. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    range: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let names = Names::load(&page).await?;
    let search = query.operation(&page)?;
    let found = match query.q.trim().is_empty() {
        true => {
            html! { (empty("Write words of a prompt, an answer, a post, a brief or an item of the memory. \"In this order\", or and -without work as in search engines.", "dalsegno search \"the quay\" --since 7d")) }
        }
        false => {
            let found = page.caller.run(search.clone()).await?;
            let is_empty = found.items.is_empty() && query.cursor.is_empty();
            let others = match is_empty && search.kind.is_some() {
                true => page.caller.run(SearchTexts { kind: None, ..search }).await?.items,
                false => Vec::new(),
            };
            hits(&page, &query, &names, &found, &TextKind::of_hits(&others))
        }
    };
    let body = html! {
        div.head { div { h1 { "Search" } div.meta { span { "Tasks, messages, posts, memory, briefs, blackboards and facts of all campaigns" } } } }
        (form(&query, &names))
        (found)
    };
    let path = html! { span { "Search" } };
    let name = if query.q.is_empty() { "Search".to_owned() } else { title(&query.q) };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

/// Returns the address of a search for words in everything.
pub(super) fn target(words: &str) -> String {
    format!("{HERE}?q={}", url_text(words))
}

impl PageQuery {
    fn filters(&self) -> [(&'static str, &str); 4] {
        [
            ("campaign_id", &self.campaign_id),
            ("agent", &self.agent),
            ("kind", &self.kind),
            ("range", &self.range),
        ]
    }

    /// Builds the search. Filters that cannot be read are refused.
    fn operation(&self, page: &Page) -> Result<SearchTexts, Refusal> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let kind = |text: &str| TextKind::ALL.into_iter().find(|kind| kind.as_str() == text);
        let range = TimeRange::read(&self.range)?;
        Ok(SearchTexts {
            q: self.q.clone(),
            campaign_id: campaign_id(&self.campaign_id)?,
            agent: given(&self.agent),
            kind: optional("a kind of texts", &self.kind, kind)?,
            created_after: range.map(|range| range.begin(page.view.now)),
            created_before: None,
            cursor: given(&self.cursor),
            limit: Some(MAX_HITS),
        })
    }
}

fn form(query: &PageQuery, names: &Names) -> Markup {
    let is_filtered = query.filters().iter().any(|(_, value)| !value.is_empty());
    html! {
        form.filters action=(HERE) role="search" {
            label.grow { "Words" input type="search" name="q" value=(query.q) maxlength="1000" placeholder="the quay" autocomplete="off"; }
            label { "In" select name="kind" {
                option value="" { "all of these" }
                @for kind in TextKind::ALL { option value=(kind.as_str()) selected[kind.as_str() == query.kind] { (many(kind)) } }
            } }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            label { "Agent" input name="agent" value=(query.agent) placeholder="any" size="12"; }
            label { "Written" select name="range" {
                option value="" { "at any time" }
                @for range in TimeRange::ALL { option value=(range.as_str()) selected[range.as_str() == query.range] { (range.words()) } }
            } }
            button.btn { "Search" }
            @if is_filtered { a."btn quiet" href=(target(&query.q)) { "Search without filters" } }
        }
    }
}

/// Renders the hits of a search. `others`: kinds that match without the filter of a kind, if nothing was found.
fn hits(
    page: &Page,
    query: &PageQuery,
    names: &Names,
    listing: &Listing<TextHit>,
    others: &[TextKind],
) -> Markup {
    let n = listing.items.len();
    let more = if listing.next.is_some() { "first " } else { "" };
    let pairs: Vec<_> = [("q", query.q.as_str())].into_iter().chain(query.filters()).collect();
    let is_filtered = query.filters().iter().any(|(_, value)| !value.is_empty());
    html! {
        @if listing.items.is_empty() {
            div.empty {
                @if others.is_empty() { "No text has these words. " } @else {
                    "No text of this kind has these words, but some of these have: " (others.iter().map(|kind| many(*kind)).collect::<Vec<_>>().join(", ")) ". "
                    @if others.contains(&TextKind::Task) { "Answers are found as the results of their tasks. " }
                }
                @if !query.cursor.is_empty() { a href=(target(&query.q)) { "Back to the newest" } }
                @else if is_filtered { a href=(target(&query.q)) { "Search without filters" } }
                @else { "Fewer words find more; a word of four letters or more also finds longer ones." }
                code { "dalsegno search " (shell_word(&query.q)) }
            }
        } @else {
            (section("Newest first", &html! { (more) (counted(n, "text", "texts")) }, &html! { ul."rows hits" { @for hit in &listing.items { (row(page, names, hit)) } } }))
        }
        (next_page(HERE, &pairs, listing.next.as_deref()))
    }
}

fn row(page: &Page, names: &Names, hit: &TextHit) -> Markup {
    let (name, words, by) = match hit.kind {
        TextKind::Task => ("task", "Task", "of"),
        TextKind::Post => ("talk", "Post", "of"),
        TextKind::Memory => ("archive", "Memory", "by"),
        TextKind::Message => ("agents", "Message", "of"),
        TextKind::Summary => ("fold", "Summary in a conversation", "of"),
        TextKind::Brief => ("overview", "Brief and client context", "by"),
        TextKind::Blackboard => ("archive", "Blackboard", "last changed by"),
        TextKind::Fact => ("agents", "Fact", "about"),
    };
    html! {
        li data-at=(hit.at.to_rfc3339()) {
            header {
                a href=(place(hit)) { (icon(name)) (words) @if !hit.author.is_empty() { " " (by) " " bdi { (hit.author) } } }
                @if let Some(campaign) = hit.campaign_id { span.faint { "in " (names.campaign(campaign)) } }
                span.end { (page.view.time(hit.at)) }
            }
            p.snippet dir="auto" { @for SnippetPart { text, is_match } in &hit.snippet { @if *is_match { mark { (text) } } @else { (text) } } }
        }
    }
}

/// Returns the address of the text: the post on its board, the message in its transcript.
fn place(hit: &TextHit) -> String {
    let campaign = |rest: &str| format!("/campaigns/{}{rest}", hit.campaign_id.unwrap_or_default());
    let seq = hit.seq.unwrap_or_default();
    match (hit.kind, hit.session_id) {
        (TextKind::Message, Some(session)) => {
            format!("/sessions/{session}?cursor={}#m{seq}", seq - 1)
        }
        (TextKind::Summary, Some(session)) => format!("/sessions/{session}/compactions/{seq}"),
        (TextKind::Post, _) => campaign(&format!("?cursor={}#p{seq}", seq + 1)),
        (TextKind::Memory, _) => campaign(&format!("?part=memory&item={}", hit.id)),
        (TextKind::Brief, _) => campaign("?part=brief"),
        (TextKind::Blackboard, _) => campaign("?part=blackboard"),
        (TextKind::Fact, _) => users::address(&hit.author),
        _ => format!("/tasks/{}", hit.id),
    }
}

fn many(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Task => "tasks",
        TextKind::Post => "posts",
        TextKind::Memory => "memory",
        TextKind::Message => "messages",
        TextKind::Summary => "summaries",
        TextKind::Brief => "briefs and client contexts",
        TextKind::Blackboard => "blackboards",
        TextKind::Fact => "facts about users",
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_hit_leads_to_its_exact_place() {
        let id = Uuid::from_u128(7);
        let hit = |kind, session_id, seq| TextHit {
            kind,
            id,
            campaign_id: Some(Uuid::from_u128(8)),
            author: "planner".into(),
            at: chrono::DateTime::UNIX_EPOCH,
            snippet: Vec::new(),
            session_id,
            seq,
        };
        let campaign = Uuid::from_u128(8);
        let message = place(&hit(TextKind::Message, Some(id), Some(12)));
        assert_eq!(message, format!("/sessions/{id}?cursor=11#m12"));
        let post = place(&hit(TextKind::Post, None, Some(3)));
        assert_eq!(post, format!("/campaigns/{campaign}?cursor=4#p3"));
        assert_eq!(place(&hit(TextKind::Task, Some(id), None)), format!("/tasks/{id}"));
        let summary = place(&hit(TextKind::Summary, Some(id), Some(2)));
        assert_eq!(summary, format!("/sessions/{id}/compactions/2"));
        let blackboard = place(&hit(TextKind::Blackboard, None, Some(4)));
        assert_eq!(blackboard, format!("/campaigns/{campaign}?part=blackboard"));
        assert_eq!(place(&hit(TextKind::Fact, None, None)), "/users?name=planner");
    }
}
