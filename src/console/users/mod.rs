//! Facts about the users for whom campaigns work.

mod actions;
mod table;
mod uses;

use axum::extract::Query;
use chrono::TimeDelta;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{empty, next_page, optional, section, url_text, wide},
};
use crate::{
    domain::{class::Kind, costs::Dimension},
    operations::{ListFacts, Refusal, ReportCosts, SearchFacts, ShowFact},
};

const HERE: &str = "/users";
/// Days in which a campaign of a known user has made a call.
const KNOWN_DAYS: i64 = 90;
/// Known users in the list: those with the highest costs.
const MAX_KNOWN: u32 = 200;
/// Best matches of a search.
const MAX_HITS: i64 = 50;

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// The user.
    #[serde(default)]
    name: String,
    /// Words to search for.
    #[serde(default)]
    q: String,
    /// `true` lists ended facts, too.
    #[serde(default)]
    ended: String,
    /// A fact that is shown with its history.
    #[serde(default)]
    fact: String,
    cursor: Option<Uuid>,
}

/// Returns the address of the facts about a user.
pub(super) fn address(user: &str) -> String {
    format!("{HERE}?name={}", url_text(user))
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let name = query.name.trim();
    let fact = optional("the id of a fact", &query.fact, |id| id.parse().ok())?;
    let (shown, actions) = match name.is_empty() {
        true => (known(&page).await?, html! {}),
        false => match facts(&page, name, &query, fact).await {
            Ok(shown) => (shown, html! { div.actions { (actions::forget(&page, name)) } }),
            // An invalid name, which a command must not have: a shell would run a part of it.
            Err(refusal) if refusal.kind == Kind::Invalid => (empty(&refusal.detail, ""), html! {}),
            Err(refusal) => return Err(refusal.into()),
        },
    };
    let body = html! {
        div.head {
            div { h1 { @if name.is_empty() { "Users" } @else { "Facts about " bdi { (name) } } } div.meta { span { "What campaigns know about the people for whom they work" } } }
            (actions)
        }
        form.filters action=(HERE) role="search" {
            label { "User" input type="search" name="name" value=(name) maxlength="128" required placeholder="ann@example.org" size="24"; }
            label { "Words of the facts" input type="search" name="q" value=(query.q) maxlength="200" placeholder="any"; }
            button.btn { "Show" }
        }
        (shown)
    };
    let path = html! { a href=(HERE) { "Users" } };
    let title = if name.is_empty() { "Users" } else { name };
    Ok(page.respond(Content { title, path, body, watch: String::new() }).await?)
}

/// Lists the users of campaigns that made calls lately.
async fn known(page: &Page) -> Result<Markup, Refusal> {
    let report = ReportCosts {
        by: Dimension::User,
        since: Some((page.view.midnight() - TimeDelta::days(KNOWN_DAYS - 1)).into()),
        top: Some(MAX_KNOWN),
        ..ReportCosts::default()
    };
    let report = page.caller.run_if_allowed(report).await?;
    let (lines, n_others) =
        report.map(|report| (report.lines, report.n_others)).unwrap_or_default();
    let users: Vec<_> = lines
        .iter()
        .filter_map(|line| {
            Some((line.value.as_deref().filter(|name| !name.is_empty())?, line.costs))
        })
        .collect();
    if users.is_empty() {
        return Ok(empty(
            "No campaign with a user has made a call in the last 90 days. Write the name of a user; the page of a campaign names its user below Facts.",
            "dalsegno memory facts ls ann@example.org",
        ));
    }
    let money = page.view.column(users.iter().map(|(_, costs)| costs.cost_micros));
    let table = html! {
        table.folds {
            thead { tr { th { "User" } th.num { "Calls" } th.num { "Cost" } } }
            tbody {
                @for (name, costs) in &users {
                    @let calls = format!("/cost/calls?days={KNOWN_DAYS}&user={}", url_text(name));
                    tr { td.fill { a href=(address(name)) { bdi { (name) } } } td.num { a href=(calls) { (costs.calls) } } td.num { (money(costs.cost_micros)) } }
                }
            }
        }
    };
    let end = html! {
        "of campaigns with calls in the last " (KNOWN_DAYS) " days"
        @if n_others > 0 { "; those with lower costs are left out" }
    };
    Ok(section("Known users", &end, &wide("Known users", &table)))
}

async fn facts(
    page: &Page,
    name: &str,
    query: &PageQuery,
    fact: Option<Uuid>,
) -> Result<Markup, Refusal> {
    let one = match fact {
        Some(fact) => page.caller.run(ShowFact { name: name.to_owned(), fact }).await.map(Some)?,
        None => None,
    };
    let shown = match &one {
        Some(fact) => uses::show(page, fact).await?,
        None => html! {},
    };
    let list = match query.q.trim() {
        "" => list(page, name, query).await?,
        words => found(page, name, words).await?,
    };
    Ok(html! {
        div.cols {
            div.stack {
                @if let Some(fact) = &one { (table::one(page, fact)) (shown) }
                (list)
            }
            aside."stack side" { (actions::state(page, name)) }
        }
    })
}

async fn list(page: &Page, name: &str, query: &PageQuery) -> Result<Markup, Refusal> {
    let is_all = query.ended == "true";
    let list =
        ListFacts { name: name.to_owned(), ended: is_all, cursor: query.cursor, limit: None };
    let listing = page.caller.run(list).await?;
    let ended = if is_all { "true" } else { "" };
    Ok(html! {
        div {
            div.filters {
                nav.choice aria-label="Facts" {
                    a href=(address(name)) aria-current=[(!is_all).then_some("page")] { "Valid" }
                    a href={ (address(name)) "&ended=true" } aria-current=[is_all.then_some("page")] { "With ended ones" }
                }
            }
            @if listing.items.is_empty() { (empty("No fact is known about this user.", &format!("dalsegno memory facts state {name} Diet \"Eats no meat.\""))) }
            @else { (section("Facts, newest first", &html! { (listing.items.len()) }, &wide("Facts", &table::facts(page, listing.items.iter())))) }
            (next_page(HERE, &[("name", name), ("ended", ended)], listing.next.as_deref()))
        }
    })
}

async fn found(page: &Page, name: &str, words: &str) -> Result<Markup, Refusal> {
    let ask = SearchFacts { name: name.to_owned(), q: words.to_owned(), limit: Some(MAX_HITS) };
    let hits = page.caller.run(ask).await?.items;
    let end = html! { (hits.len()) " · " a href=(address(name)) { "all facts" } };
    Ok(match hits.is_empty() {
        true => empty(
            "No valid fact has these words.",
            &format!("dalsegno memory facts search {name} WORDS"),
        ),
        false => section(
            "Found, best match first",
            &end,
            &wide("Facts", &table::facts(page, hits.iter().map(|hit| &hit.fact))),
        ),
    })
}
