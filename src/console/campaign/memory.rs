//! The memory of a campaign: its items, and the versions of one of them.

use maud::{Markup, html};
use uuid::Uuid;

use super::{PageQuery, memory_forms};
use crate::{
    console::{
        page::Page,
        parts::{Tone, empty, facts, next_page, rendered, section, title, wide, word_diff},
    },
    domain::{
        class::Kind,
        memory::{Item, Version},
    },
    operations::{ListMemory, ListMemoryVersions, Refusal, ShowMemory, diff_words},
};

pub(super) async fn show(
    page: &Page,
    campaign: Uuid,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    match query.item {
        Some(item) => one(page, campaign, item, query.version).await,
        None => list(page, campaign, query).await,
    }
}

fn here(campaign: Uuid) -> String {
    format!("/campaigns/{campaign}?part=memory")
}

async fn list(page: &Page, campaign: Uuid, query: &PageQuery) -> Result<Markup, Refusal> {
    let words = query.q.trim();
    if !words.is_empty() {
        let hits = memory_forms::hits(page, campaign, &here(campaign), words).await?;
        return Ok(html! { (memory_forms::search_field(campaign, words)) (hits) });
    }
    let is_all = query.ended == "true";
    let list = ListMemory {
        id: campaign,
        kind: None,
        owner: None,
        ended: is_all,
        cursor: query.cursor.parse().ok(),
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let row = |item: &Item| {
        html! {
            tr.gone[has_ended(page, item)] {
                td { (item.kind.as_str()) @if let Some(owner) = &item.owner { " of " bdi { (owner) } } }
                td.text { a href={ (here(campaign)) "&item=" (item.id) } { bdi { (title(&item.title)) } } }
                td { bdi { (item.author) } }
                td.num { (item.version) }
                td { (page.view.time(item.written_at)) }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "Kind" } th { "Title" } th { "Author" } th.num { "Version" } th { "Written" } } }
            tbody { @for item in &listing.items { (row(item)) } }
        }
    };
    let ended = if is_all { "&ended=true" } else { "" };
    Ok(html! {
        (memory_forms::search_field(campaign, ""))
        div.filters {
            nav.choice aria-label="Items" {
                a href=(here(campaign)) aria-current=[(!is_all).then_some("page")] { "Valid" }
                a href={ (here(campaign)) "&ended=true" } aria-current=[is_all.then_some("page")] { "With revoked and expired ones" }
            }
        }
        @if listing.items.is_empty() { (empty("Nothing is remembered yet: no edict, record or journal entry.", &format!("dalsegno memory publish --campaign {campaign} edict NAME --title \"…\" \"…\""))) }
        @else { (section("Memory", &html! { (listing.items.len()) }, &wide("Memory", &table))) }
        (next_page(&format!("/campaigns/{campaign}"), &[("part", "memory"), ("ended", ended.trim_start_matches("&ended="))], listing.next.as_deref()))
        div.apart { (memory_forms::new(page, campaign, &here(campaign))) }
    })
}

fn has_ended(page: &Page, item: &Item) -> bool {
    item.revoked_at.is_some() || item.expires_at.is_some_and(|at| at <= page.view.now)
}

/// An item with its versions; a version is compared with the one before it.
async fn one(
    page: &Page,
    campaign: Uuid,
    item: Uuid,
    version: Option<i64>,
) -> Result<Markup, Refusal> {
    let read = |version| page.caller.run(ShowMemory { id: campaign, item, version });
    let version = version.and_then(|version| i32::try_from(version).ok());
    let shown = match read(version).await {
        Ok(shown) => shown,
        Err(refusal) if refusal.kind == Kind::NotFound => return Ok(empty(&refusal.detail, "")),
        Err(refusal) => return Err(refusal),
    };
    let versions = page.caller.run(ListMemoryVersions { id: campaign, item }).await?.items;
    let before = match shown.version {
        1 => None,
        version => read(Some(version - 1)).await.ok(),
    };
    let body = shown.body.as_deref().unwrap_or_default();
    let end = html! { "version " (shown.version) " of " (versions.len()) " · " a href=(here(campaign)) { "all items" } };
    Ok(html! {
        div.stack {
            (section(&title(&shown.title), &end, &html! { (item_facts(page, &shown)) div.after { (rendered(body)) } }))
            @if let Some(before) = &before { (difference(before, &shown)) }
            @if versions.len() == usize::try_from(shown.version).unwrap_or(0) { (memory_forms::change(page, &shown, &here(campaign))) }
            (history(page, campaign, &shown, &versions))
        }
    })
}

fn item_facts(page: &Page, item: &Item) -> Markup {
    facts(&[
        (
            "Kind",
            html! { (item.kind.as_str()) @if let Some(owner) = &item.owner { " of " bdi { (owner) } } },
        ),
        ("Name", html! { code { bdi { (item.name) } } }),
        (
            "Author",
            html! { bdi { (item.author) } @if let Some(task) = item.task_id { ", " a href={ "/tasks/" (task) } { "in its task" } } },
        ),
        ("Written", page.view.time(item.written_at)),
        ("Expires", html! { @if let Some(at) = item.expires_at { (page.view.time(at)) } }),
        (
            "Revoked",
            html! { @if let Some(at) = item.revoked_at { (Tone::Cancelled.state("revoked", None)) " " (page.view.time(at)) @if let Some(by) = &item.revoked_by { " by " bdi { (by) } } } },
        ),
    ])
}

fn difference(before: &Item, shown: &Item) -> Markup {
    let text = |item: &Item| item.body.clone().unwrap_or_default();
    let (old, new) = (text(before), text(shown));
    let body = html! {
        @if before.title != shown.title { h3 { "Title" } (word_diff(&diff_words(&before.title, &shown.title))) h3.after { "Text" } }
        @if old == new { p."small soft" { "Both versions have the same text." } } @else { (word_diff(&diff_words(&old, &new))) }
    };
    section("Changes", &html! { "version " (before.version) " → " (shown.version) }, &body)
}

fn history(page: &Page, campaign: Uuid, item: &Item, versions: &[Version]) -> Markup {
    let row = |version: &Version| {
        let target = format!("{}&item={}&version={}", here(campaign), item.id, version.version);
        html! {
            tr {
                td.num { a href=(target) aria-current=[(version.version == item.version).then_some("true")] { (version.version) } }
                td.text { bdi { (title(&version.title)) } }
                td { bdi { (version.author) } @if let Some(task) = version.task_id { ", " a href={ "/tasks/" (task) } { "task" } } }
                td { (page.view.time(version.written_at)) }
                td.num { (version.bytes) }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th.num { "Version" } th { "Title" } th { "Author" } th { "Written" } th.num { "Bytes" } } }
            tbody { @for version in versions { (row(version)) } }
        }
    };
    section("Versions", &html! { (versions.len()) ", newest first" }, &wide("Versions", &table))
}
