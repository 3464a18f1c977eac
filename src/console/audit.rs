//! The audit log, with its filters in the URL.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    groups,
    layout::Content,
    page::{Page, PageResult},
    parts::{counted, empty, id, next_page, section, wide},
};
use crate::{domain::audit::Entry, operations::ListAudit};

const HERE: &str = "/audit";
/// Nouns of actions, by which the log is filtered.
const NOUNS: [&str; 14] = [
    "campaign", "task", "session", "agent", "memory", "fact", "flow", "schedule", "queue", "job",
    "webhook", "key", "sign_in", "cleanup",
];
/// Kinds of subjects whose pages are in this folder.
const FOLDERS: [(&str, &str); 5] = [
    ("campaign", "campaigns"),
    ("task", "tasks"),
    ("session", "sessions"),
    ("webhook", "webhooks"),
    ("job", "work/jobs"),
];

/// Filters of the log. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    actor: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    after: String,
    #[serde(default)]
    before: String,
    cursor: Option<i64>,
}

impl PageQuery {
    fn filters(&self) -> [(&'static str, &str); 5] {
        [
            ("actor", &self.actor),
            ("action", &self.action),
            ("subject", &self.subject),
            ("after", &self.after),
            ("before", &self.before),
        ]
    }

    fn is_filtered(&self) -> bool {
        self.filters().iter().any(|(_, value)| !value.is_empty())
    }
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let list = ListAudit {
        actor: given(&query.actor),
        action: given(&query.action),
        subject: given(&query.subject),
        created_after: page.view.moment(&query.after),
        created_before: page.view.moment(&query.before),
        cursor: query.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let more = if listing.next.is_some() { "first " } else { "" };
    let end = html! { (more) (counted(listing.items.len(), "line", "lines")) };
    let body = html! {
        div.head { div { h1 { "Audit log" } div.meta { span { "Changes that people and programs asked for, each with its caller" } } } }
        (groups::access(HERE))
        (form(&page, &query))
        @if listing.items.is_empty() {
            @if query.is_filtered() { div.empty { "No line matches these filters. " a href=(HERE) { "Show all lines" } } }
            @else { (empty("The log has no line yet: it begins with the first change.", "dalsegno audit ls")) }
        } @else {
            (section("Newest first", &end, &table(&page, &listing.items)))
        }
        (next_page(HERE, &query.filters(), listing.next.as_deref()))
    };
    let path = html! { span { "Access" } };
    Ok(page.respond(Content { title: "Audit log", path, body, watch: String::new() }).await?)
}

fn form(page: &Page, query: &PageQuery) -> Markup {
    let is_other = !query.action.is_empty() && !NOUNS.contains(&query.action.as_str());
    html! {
        form.filters action=(HERE) role="search" {
            label { "Action" select name="action" {
                option value="" { "any" }
                @for noun in NOUNS { option value=(noun) selected[noun == query.action] { (noun.replace('_', " ")) } }
                @if is_other { option value=(query.action) selected { (query.action) } }
            } }
            label { "Caller" input name="actor" value=(query.actor) placeholder="a name, a kind or a key" size="18"; }
            label { "Subject" input type="search" name="subject" value=(query.subject) placeholder="an id or a name" size="18"; }
            label { "After, in " (page.view.zone()) input type="datetime-local" name="after" value=(query.after); }
            label { "Before, in " (page.view.zone()) input type="datetime-local" name="before" value=(query.before); }
            button.btn { "Filter" }
            @if query.is_filtered() { a."btn quiet" href=(HERE) { "Show all" } }
        }
    }
}

fn table(page: &Page, entries: &[Entry]) -> Markup {
    let row = |entry: &Entry| {
        html! {
            tr {
                td { (page.view.clock(entry.at)) }
                td.text { b { @if entry.actor.is_empty() { (entry.actor_kind.replace('_', " ")) } @else { bdi { (entry.actor) } } } div."tiny faint" { (entry.actor_kind.replace('_', " ")) @if let Some(peer) = &entry.peer { " from " (peer) } } }
                td { a href={ (HERE) "?action=" (entry.action) } { (entry.action) } }
                td { (subject(entry)) }
                td.text { (data(entry)) }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "At" } th { "Caller" } th { "Action" } th { "Subject" } th { "Details" } } }
            tbody { @for entry in entries { (row(entry)) } }
        }
    };
    wide("Audit log", &table)
}

fn subject(entry: &Entry) -> Markup {
    let folder = FOLDERS.iter().find(|(kind, _)| *kind == entry.subject_kind);
    let name = html! {
        @match entry.subject.parse::<Uuid>() {
            Ok(given) => (id(&entry.subject_kind.replace('_', " "), given)),
            Err(_) => { (entry.subject_kind.replace('_', " ")) " " bdi { (entry.subject) } },
        }
    };
    match folder {
        Some((_, folder)) => html! { a href={ "/" (folder) "/" (entry.subject) } { (name) } },
        None => name,
    }
}

/// Shows the fields of a line, without those that are empty.
fn data(entry: &Entry) -> Markup {
    let fields = entry.data.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null() && value.as_str() != Some(""));
    // The reason of a request that names none.
    let fields = fields.filter(|(_, value)| value.as_str() != Some("by a request"));
    html! {
        @for (n, (name, value)) in fields.enumerate() {
            @if n > 0 { ", " }
            span.faint { (name.replace('_', " ")) ":" } " " bdi { @match value.as_str() { Some(text) => (text), None => (value.to_string()) } }
        }
    }
}
