//! The search for ids, names, pages and actions, in the sheet of `Ctrl K` and as a page of its own.

mod destinations;
mod pauses;

use axum::{
    extract::Query,
    http::HeaderMap,
    response::{Html, IntoResponse as _},
};
use maud::{Markup, html};
use serde::Deserialize;

use self::destinations::{Destination, PAGES, matching, nearest, words_of};
use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{agent_name, empty, id, title, url_text},
    search, users,
};
use crate::{
    domain::{campaigns::NameQuery, class::Kind, tasks::ListedTask},
    operations::{
        FindId, ListAgents, ListFacts, ListTasks, Noun, Operation as _, Refusal, SearchTexts,
    },
};

/// The kind of the link to the search over all texts, which is no hit.
const EVERYWHERE: &str = "tasks, transcripts, posts, memory, briefs, blackboards, facts";
/// Most results of a kind.
const MAX_OF_KIND: usize = 5;
const MAX_CAMPAIGNS: i64 = 5;
/// Digits of an id from which ids are looked up.
const MIN_DIGITS: usize = 8;
/// Ids of a kind among which an end is looked for.
const NEWEST: i64 = 20_000;

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    q: String,
}

/// A result: what it is, and where.
struct Hit {
    target: String,
    name: Markup,
    kind: &'static str,
}

pub(super) async fn show(
    Query(query): Query<PageQuery>,
    headers: HeaderMap,
    page: Page,
) -> PageResult {
    let text = query.q.trim();
    let found = find(&page, text).await?;
    let is_single = |it: &&Hit| it.kind != EVERYWHERE;
    let n_hits = found.iter().filter(is_single).count();
    let list = html! {
        @if found.is_empty() && !text.is_empty() { div.empty { "Nothing is called “" bdi { (title(text)) } "”." @if is_id_like(text) { " The end of an id is found among the newest 20,000; write the beginning or the whole of an older one." } } }
        ul."rows found" data-query=(text) data-hits=(n_hits) {
            @for Hit { target, name, kind } in &found { li { a href=(target) data-everywhere[*kind == EVERYWHERE] { (name) " " span."faint small" { (kind) } } } }
        }
    };
    if headers.contains_key("hx-request") {
        return Ok(Html(list.into_string()).into_response());
    }
    let body = html! {
        div.head { div { h1 { "Find" } } }
        form.filters action="/find" role="search" { input type="search" name="q" value=(text) aria-label="An id, a name or a page" size="40"; button.btn { "Find" } }
        @if text.is_empty() { (empty("Write an id or the end of one, the name of a campaign, or words of a prompt.", "dalsegno task ls --text WORDS")) } @else { (list) }
    };
    Ok(page
        .respond(Content {
            title: "Find",
            path: html! { span { "Find" } },
            body,
            watch: String::new(),
        })
        .await?)
}

async fn find(page: &Page, text: &str) -> Result<Vec<Hit>, Refusal> {
    if text.is_empty() {
        return Ok(PAGES.iter().map(Hit::of).collect());
    }
    let words = words_of(text);
    let places = if words.is_empty() { Vec::new() } else { matching(&words) };
    let mut all: Vec<Hit> = Vec::new();
    let mut named = Vec::new();
    if is_id_like(text) {
        all.extend(by_id(page, text).await?);
    } else if text.chars().count() >= 2 {
        let needle = text.to_lowercase();
        all.extend(campaigns(page, text).await?);
        all.extend(agents(page, &needle).await?);
        all.extend(user(page, text).await?);
        named = pauses::find(page, &words).await?;
        named.extend(tasks(page, text).await?);
    }
    all.extend(places.into_iter().map(Hit::of));
    all.extend(named);
    if all.is_empty() && !is_id_like(text) {
        all.extend(nearest(&words).into_iter().take(MAX_OF_KIND).map(Hit::of));
    }
    all.extend(everywhere(page, text));
    Ok(all)
}

impl Hit {
    fn of(place: &Destination) -> Self {
        let is_page = PAGES.contains(place);
        Self {
            target: place.target.to_owned(),
            name: html! { (place.name) },
            kind: if is_page { "page" } else { "action" },
        }
    }
}

/// Leads from the words to the search over all texts.
fn everywhere(page: &Page, text: &str) -> Option<Hit> {
    let has_word = text.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    let found = || Hit {
        target: search::target(text),
        name: html! { "Search for “" bdi { (title(text)) } "” in texts" },
        kind: EVERYWHERE,
    };
    (has_word && page.caller.may(&SearchTexts::SPEC)).then(found)
}

fn is_id_like(text: &str) -> bool {
    let n_digits = text.chars().filter(char::is_ascii_hexdigit).count();
    n_digits >= MIN_DIGITS && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

async fn by_id(page: &Page, text: &str) -> Result<Vec<Hit>, Refusal> {
    let mut all = Vec::new();
    for (noun, kind, folder) in [
        (Noun::Task, "task", "tasks"),
        (Noun::Session, "session", "sessions"),
        (Noun::Campaign, "campaign", "campaigns"),
        (Noun::Flow, "flow", "flows"),
    ] {
        let find = FindId { noun, text: text.to_owned(), newest: Some(NEWEST) };
        match page.caller.run_if_allowed(find).await {
            Ok(Some(found)) => all.push(Hit {
                target: format!("/{folder}/{}", found.id),
                name: id(kind, found.id),
                kind,
            }),
            Ok(None) => {}
            // Unknown or ambiguous: the other nouns may have it.
            Err(refusal)
                if matches!(
                    refusal.kind,
                    Kind::NotFound | Kind::Invalid | Kind::Conflict | Kind::Malformed
                ) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(all)
}

async fn campaigns(page: &Page, text: &str) -> Result<Vec<Hit>, Refusal> {
    let words = [text.to_owned()];
    let query = NameQuery { words: &words, status: None, within: None, limit: MAX_CAMPAIGNS };
    let named = page.caller.search_campaigns(query).await?;
    let found = named.into_iter().map(|(id, name)| Hit {
        target: format!("/campaigns/{id}"),
        name: html! { bdi { (name) } },
        kind: "campaign",
    });
    Ok(found.collect())
}

async fn agents(page: &Page, needle: &str) -> Result<Vec<Hit>, Refusal> {
    let agents = page.caller.run_if_allowed(ListAgents {}).await?;
    let names = agents.into_iter().flat_map(|all| all.items);
    let names = names.filter_map(|it| it["name"].as_str().map(str::to_owned));
    let named = names.filter(|name| name.to_lowercase().contains(needle));
    let found = named.take(MAX_OF_KIND).map(|name| Hit {
        target: format!("/catalogue/agent/{}", url_text(&name)),
        name: html! { bdi { (name) } },
        kind: "agent",
    });
    Ok(found.collect())
}

/// Finds the user with exactly this name, if there is a fact about them.
async fn user(page: &Page, name: &str) -> Result<Option<Hit>, Refusal> {
    let list = ListFacts { name: name.to_owned(), ended: false, cursor: None, limit: Some(1) };
    let has_facts = match page.caller.run_if_allowed(list).await {
        Ok(listing) => listing.is_some_and(|listing| !listing.items.is_empty()),
        // These words cannot be the name of a user.
        Err(refusal) if refusal.kind == Kind::Invalid => false,
        Err(refusal) => return Err(refusal),
    };
    Ok(has_facts.then(|| Hit {
        target: users::address(name),
        name: html! { "Facts about " bdi { (name) } },
        kind: "user",
    }))
}

async fn tasks(page: &Page, text: &str) -> Result<Vec<Hit>, Refusal> {
    let list = ListTasks {
        text: Some(text.chars().take(200).collect()),
        limit: Some(5),
        ..ListTasks::default()
    };
    let listing = page.caller.run_if_allowed(list).await?;
    let all = listing.map(|listing| listing.items).unwrap_or_default();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let listed: Vec<_> = all.iter().map(|listed| &listed.task).collect();
    let names = page.caller.campaign_names(&listed).await?;
    let found = all.into_iter().take(MAX_OF_KIND).map(|ListedTask { task, .. }| Hit {
        target: format!("/tasks/{}", task.id),
        name: html! {
            bdi { (title(task.subject())) }
            " " span."faint small" {
                bdi { (agent_name(&task.agent, &task.instance)) }
                @if let Some(name) = names.get(&task.campaign_id) { " · " bdi { (name) } }
                " · " (task.state.as_str()) " · " (page.view.time(task.created_at)) " ·"
            }
        },
        kind: "task",
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_hexadecimal_texts_are_ids() {
        assert!(is_id_like("9c14e2b7") && is_id_like("019ab6e2-41c7"));
        assert!(
            !is_id_like("9c14e2") && !is_id_like("harbour series") && !is_id_like("deadbeef words")
        );
    }
}
