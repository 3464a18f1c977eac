//! The audit log, with its filters in the URL.

use axum::{extract::Query, response::Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    groups,
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{
        View, capital, counted, empty, facts, id, next_page, optional, section, time_field,
        url_text, wide,
    },
    problem, users,
};
use crate::{
    domain::audit::{Action, Entry, limit_steps},
    http::Problem,
    operations::{ListAgents, ListAudit, Refusal},
};

const HERE: &str = "/audit";
/// Campaigns whose names are suggested as a subject.
const MAX_NAMES: usize = 200;
/// Kinds of subjects with the folder of their pages.
const FOLDERS: [(&str, &str); 5] = [
    ("campaign", "campaigns"),
    ("task", "tasks"),
    ("session", "sessions"),
    ("flow", "flows"),
    ("webhook", "webhooks"),
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

    /// Builds the list. A time that cannot be read is refused: without it, the page would show lines of all times.
    fn list(&self, view: &View) -> Result<ListAudit, Refusal> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let moment = |text: &str| optional("a time", text, |text| view.moment(text));
        Ok(ListAudit {
            actor: given(&self.actor),
            action: given(&self.action),
            subject: given(&self.subject),
            created_after: moment(&self.after)?,
            created_before: moment(&self.before)?,
            cursor: self.cursor,
            limit: None,
        })
    }
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let list = match query.list(&page.view) {
        Ok(list) => list,
        Err(refusal) => return refused(&page, &query, refusal).await,
    };
    let listing = page.caller.run(list).await?;
    let names = Names::load(&page).await?;
    let more = if listing.next.is_some() { "first " } else { "" };
    let end = html! { (more) (counted(listing.items.len(), "line", "lines")) };
    let lines = html! {
        @if listing.items.is_empty() {
            @if listing.next.is_some() { div.empty { "No match among the next 100,000 lines; older ones have not been searched yet." } }
            @else if query.is_filtered() { div.empty { "No line matches these filters. " @if !query.subject.is_empty() { "A subject is an id, its last 8 or more digits, the name of a campaign, an agent, a user, an API key or a schedule, or the host of a webhook. " } a href=(HERE) { "Show all lines" } } }
            @else { (empty("The log has no line yet: it begins with the first change.", "dalsegno audit ls")) }
        } @else {
            (section("Newest first", &end, &table(&page, &listing.items, &names)))
        }
        (next_page(HERE, &query.filters(), listing.next.as_deref()))
    };
    Ok(respond(&page, &query, &names, &lines).await?)
}

/// Shows the form again, with the reason of the refusal in place of the lines.
async fn refused(page: &Page, query: &PageQuery, refusal: Refusal) -> PageResult {
    let problem = Problem::from(refusal);
    let names = Names::load(page).await?;
    let mut response = respond(page, query, &names, &problem::block(&problem)).await?;
    *response.status_mut() = problem.status;
    Ok(response)
}

async fn respond(
    page: &Page,
    query: &PageQuery,
    names: &Names,
    lines: &Markup,
) -> Result<Response, Refusal> {
    let agents = agent_names(page).await?;
    let body = html! {
        div.head { div { h1 { "Audit log" } div.meta { span { "Changes that people and programs asked for, each with its caller" } } } }
        (groups::keys(HERE))
        (form(page, query, names, &agents))
        (lines)
    };
    let path = html! { a href="/keys" { "API keys" } span { "/" } span { "Audit log" } };
    page.respond(Content { title: "Audit log", path, body, watch: String::new() }).await
}

/// Names of agents, which are suggested as subjects.
async fn agent_names(page: &Page) -> Result<Vec<String>, Refusal> {
    let agents = page.caller.run_if_allowed(ListAgents {}).await?;
    let items = agents.into_iter().flat_map(|all| all.items);
    Ok(items.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect())
}

fn form(page: &Page, query: &PageQuery, names: &Names, agents: &[String]) -> Markup {
    let is_known = Action::ALL
        .iter()
        .any(|action| [action.as_str(), action.subject_kind()].contains(&query.action.as_str()));
    let is_other = !query.action.is_empty() && !is_known;
    html! {
        form.filters action=(HERE) role="search" {
            label { "Action" select name="action" {
                option value="" { "any" }
                @for own in Action::ALL.chunk_by(|a, b| a.subject_kind() == b.subject_kind()) {
                    @let noun = own[0].subject_kind();
                    optgroup label=(noun.replace('_', " ")) {
                        option value=(noun) selected[noun == query.action] { (noun.replace('_', " ")) ", all" }
                        @for action in own { option value=(action.as_str()) selected[action.as_str() == query.action] { (action.as_str()) } }
                    }
                }
                @if is_other { option value=(query.action) selected { (query.action) } }
            } }
            label { "Caller" input name="actor" value=(query.actor) placeholder="a name, a kind or a key" size="18"; }
            label { "Subject" input type="search" name="subject" list="subjects" value=(query.subject) placeholder="a name, an id or its last digits" size="28"; }
            datalist #subjects {
                @for name in names.newest().take(MAX_NAMES).chain(agents.iter().map(String::as_str)) { option value=(name) {} }
            }
            label { "After, in " (page.view.zone()) input type=(time_field(&query.after)) name="after" value=(query.after); }
            label { "Before, in " (page.view.zone()) input type=(time_field(&query.before)) name="before" value=(query.before); }
            button.btn { "Filter" }
            @if query.is_filtered() { a."btn quiet" href=(HERE) { "Show all" } }
        }
    }
}

fn table(page: &Page, entries: &[Entry], names: &Names) -> Markup {
    let row = |entry: &Entry| {
        html! {
            tr {
                td { (page.view.clock(entry.at)) }
                td.text { b { @if entry.actor.is_empty() { (entry.actor_kind.replace('_', " ")) } @else { bdi { (entry.actor) } } } div."tiny faint" { (entry.actor_kind.replace('_', " ")) @if let Some(peer) = &entry.peer { " from " (peer) } } }
                td { a href={ (HERE) "?action=" (entry.action) } { (entry.action) } }
                td { (subject(entry, names)) }
                td.text { (details(page, entry, names)) }
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

/// Names the subject, with a link to its page.
fn subject(entry: &Entry, names: &Names) -> Markup {
    let kind = entry.subject_kind.replace('_', " ");
    let Ok(given) = entry.subject.parse::<Uuid>() else {
        return match entry.subject_kind.as_str() {
            "lane" => {
                html! { (kind) " " a href={ "/work/lanes?name=" (url_text(&entry.subject)) } { bdi { (names.lane(&entry.subject)) } } }
            }
            "agent" => {
                html! { (kind) " " a href={ "/catalogue/agent/" (url_text(&entry.subject)) } { bdi { (entry.subject) } } }
            }
            "user" => {
                html! { (kind) " " a href=(users::address(&entry.subject)) { bdi { (entry.subject) } } }
            }
            "budget" => {
                html! { (kind) " of " a href={ "/cost/budgets?of=" (url_text(&entry.subject)) } { bdi { (entry.subject.replacen('/', " ", 1)) } } }
            }
            "job" => {
                html! { a href={ "/work/jobs/" (url_text(&entry.subject)) } { (kind) " " bdi { (entry.subject) } } }
            }
            _ => html! { (kind) " " bdi { (entry.subject) } },
        };
    };
    let folder = FOLDERS.iter().find(|(kind, _)| *kind == entry.subject_kind);
    match (names.name(given), folder) {
        // Lines about agents, texts and budgets of a campaign have its id.
        (Some(_), _) => html! { @if kind != "campaign" { (kind) " of " } (names.campaign(given)) },
        (None, Some((_, folder))) => {
            html! { a href={ "/" (folder) "/" (entry.subject) } { (id(&kind, given)) } }
        }
        (None, None) => id(&kind, given),
    }
}

/// Shows the fields of a line, without those that are empty, and all of them as JSON on demand.
fn details(page: &Page, entry: &Entry, names: &Names) -> Markup {
    let Some(steps) = limit_steps(entry, &|micros| page.view.money(micros)) else {
        return all_fields(entry, names);
    };
    let steps: Vec<_> = steps.iter().map(|step| (capital(step.name), step)).collect();
    let rows: Vec<_> = steps
        .iter()
        .map(|(name, step)| (name.as_str(), html! { (step.before) " → " (step.after) }))
        .collect();
    html! { (facts(&rows)) (as_json(entry)) }
}

fn as_json(entry: &Entry) -> Markup {
    html! { details.raw { summary { "as JSON" } pre."code wrap" { (format!("{:#}", entry.data)) } } }
}

fn all_fields(entry: &Entry, names: &Names) -> Markup {
    let fields = entry.data.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null() && value.as_str() != Some(""));
    // The reason of a request that names none.
    let fields = fields.filter(|(_, value)| value.as_str() != Some("by a request"));
    let rows: Vec<(String, Markup)> =
        fields.map(|(name, it)| (capital(&name.replace('_', " ")), value(it, names))).collect();
    let rows: Vec<(&str, Markup)> =
        rows.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    html! {
        @if !rows.is_empty() {
            (facts(&rows))
            (as_json(entry))
        }
    }
}

/// Shows a value in words: `yes`, the name of a campaign, the items of a list, the fields of an object one below the other.
fn value(value: &Value, names: &Names) -> Markup {
    match value {
        Value::Null => html! { span.faint { "none" } },
        Value::Bool(is_so) => html! { @if *is_so { "yes" } @else { "no" } },
        Value::Number(number) => html! { (number) },
        Value::String(text) => match text.parse::<Uuid>() {
            Ok(given) if names.name(given).is_some() => names.campaign(given),
            Ok(given) if text.len() == 36 => id("", given),
            _ => html! { bdi { (text) } },
        },
        Value::Array(items) => html! {
            @if items.is_empty() { span.faint { "none" } }
            @for (place, item) in items.iter().enumerate() { @if place > 0 { ", " } (self::value(item, names)) }
        },
        Value::Object(fields) => html! {
            @for (name, it) in fields.iter().filter(|(_, it)| !it.is_null()) { div { span.faint { (name.replace('_', " ")) ":" } " " (self::value(it, names)) } }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_are_words_and_hostile_ones_stay_texts() {
        let entry = Entry {
            id: 1,
            at: chrono::DateTime::UNIX_EPOCH,
            actor_kind: "cli".to_owned(),
            actor: "ann".to_owned(),
            actor_id: None,
            action: "bulk_action.create".to_owned(),
            subject_kind: "bulk_action".to_owned(),
            subject: Uuid::from_u128(7).to_string(),
            peer: None,
            data: json!({ "filter": { "state": "failed", "tags": ["a", "b"] }, "retry": true, "reason": "<b>", "limit": null }),
        };
        let shown = all_fields(&entry, &Names::default()).0;
        for part in [
            "<dt>Retry</dt><dd>yes</dd>",
            "<dt>Reason</dt><dd><bdi>&lt;b&gt;</bdi></dd>",
            "state:</span> <bdi>failed</bdi>",
            "<bdi>a</bdi>, <bdi>b</bdi>",
            "<summary>as JSON</summary>",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("Limit"), "{shown}");
    }
}
