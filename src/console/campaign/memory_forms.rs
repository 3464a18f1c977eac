//! The forms of the memory: search, publish, import, revoke.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, empty, section, shell_word, time_field, title, wide},
    },
    domain::{
        class::Kind as ErrorKind,
        memory::{Hit, Item, Kind},
    },
    operations::{ImportMemory, PublishMemory, Refusal, RevokeMemory, SearchMemory},
};

/// Best matches of a search.
const MAX_HITS: i64 = 50;

pub(super) fn search_field(campaign: Uuid, words: &str) -> Markup {
    html! {
        form.filters action={ "/campaigns/" (campaign) } role="search" {
            input type="hidden" name="part" value="memory";
            label { "Words of titles and texts" input type="search" name="q" value=(words) maxlength="200" placeholder="tone of voice"; }
            button.btn { "Search" }
        }
    }
}

/// Shows the items that match best.
pub(super) async fn hits(
    page: &Page,
    campaign: Uuid,
    here: &str,
    words: &str,
) -> Result<Markup, Refusal> {
    let ask = SearchMemory { id: campaign, q: words.to_owned(), kind: None, limit: Some(MAX_HITS) };
    let hits = match page.caller.run(ask).await {
        Ok(listing) => listing.items,
        Err(refusal) if refusal.kind == ErrorKind::Invalid => {
            return Ok(empty(&refusal.detail, ""));
        }
        Err(refusal) => return Err(refusal),
    };
    let row = |Hit { item, snippet, .. }: &Hit| {
        html! {
            tr {
                td { (item.kind.as_str()) @if let Some(owner) = &item.owner { " of " bdi { (owner) } } }
                td.text { a href={ (here) "&item=" (item.id) } { bdi { (title(&item.title)) } } div."small soft" { bdi { (snippet.replace("**", "")) } } }
            }
        }
    };
    let table = html! {
        table.folds { thead { tr { th { "Kind" } th { "Title and passage" } } } tbody { @for hit in &hits { (row(hit)) } } }
    };
    let command = format!("dalsegno memory search --campaign {campaign} {}", shell_word(words));
    let end = html! { (hits.len()) " · " a href=(here) { "all items" } };
    Ok(match hits.is_empty() {
        true => empty("No valid item has these words.", &command),
        false => section("Found, best match first", &end, &wide("Found", &table)),
    })
}

/// The forms for new items: one, and many as JSON.
pub(super) fn new(page: &Page, campaign: Uuid, here: &str) -> Markup {
    let given = campaign.to_string();
    let fields = [("id", given.as_str())];
    let publish = Action::of::<PublishMemory>("Publish", "", &fields, here);
    let import = Action::of::<ImportMemory>("Import", "", &fields, here);
    if !publish.is_allowed(&page.caller) {
        return html! {};
    }
    let one = html! {
        div.field { label for="item-kind" { "Kind" } select #item-kind name="kind" { @for kind in Kind::ALL { option value=(kind.as_str()) { (kind.as_str()) " — " (meaning(kind)) } } } }
        div.field { label for="item-owner" { "Agent of the journal; empty for edicts and records" } input #item-owner name="owner" maxlength="80" autocomplete="off"; }
        div.field { label for="item-name" { "Name; an existing name gets a new version" } input #item-name name="name" maxlength="64" placeholder="tone-of-voice" autocomplete="off"; }
        (texts("", ""))
        (expiry(page, None))
        div."actions after" { button."btn primary" { "Publish" } }
    };
    let many = html! {
        p."small soft" { "A JSON array, as the export has it: all items are stored, or none and a list of all problems." }
        div.field { label for="items" { "Items" } textarea #items name="json:items" rows="8" required spellcheck="false" placeholder=(EXAMPLE) {} }
        label.small { input type="checkbox" name="flag:replace" value="true"; " Items that exist with another text get a new version" }
        div."actions after" { button.btn { "Import" } }
    };
    let body = html! {
        details { summary { "Publish an item" } (publish.form(&page.view, &one)) }
        details.after { summary { "Import items" } (import.form(&page.view, &many)) }
        p."small after" { a href={ "/campaigns/" (campaign) "/memory.json" } { "Export all valid items" } }
    };
    section("Add", &html! {}, &body)
}

/// A JSON array with one item.
const EXAMPLE: &str =
    r#"[{"kind": "edict", "name": "tone", "title": "The tone", "body": "Short sentences."}]"#;

/// The forms for an item: its next version, and its end.
pub(super) fn change(page: &Page, item: &Item, here: &str) -> Markup {
    let (campaign, given) = (item.campaign_id.to_string(), item.id.to_string());
    let then = format!("{here}&item={given}");
    let version = item.version.to_string();
    let kind = item.kind.as_str();
    let owner = item.owner.as_deref().unwrap_or_default();
    let fields = [
        ("id", campaign.as_str()),
        ("kind", kind),
        ("owner", owner),
        ("name", &item.name),
        ("number:expected_version", &version),
    ];
    let publish = Action::of::<PublishMemory>("Publish", "", &fields, &then);
    let ids = [("id", campaign.as_str()), ("item", given.as_str())];
    let revoke = Confirmation {
        action: Action::of::<RevokeMemory>("Revoke", "", &ids, &then).class("btn danger"),
        id: "confirm-revoke",
        heading: "Revoke this item",
        consequences: html! { p { "Agents no longer see or find it. People can still read it." } },
        fields: html! {},
        command: format!("dalsegno memory revoke --campaign {campaign} {kind} {}", item.name),
    };
    if !publish.is_allowed(&page.caller) || item.revoked_at.is_some() {
        return html! {};
    }
    let form = html! {
        (texts(&item.title, item.body.as_deref().unwrap_or_default()))
        (expiry(page, item.expires_at))
        p."small soft after" { "It makes version " (item.version + 1) ", and is refused if another one comes first." }
        div."actions after" { button."btn primary" { "Publish" } }
    };
    let body = html! {
        @if item.kind != Kind::Journal { details { summary { "Write the next version" } (publish.form(&page.view, &form)) } }
        div."actions after" { (revoke.button(&page.view, &page.caller)) }
    };
    section("Change", &html! {}, &body)
}

fn texts(title: &str, body: &str) -> Markup {
    html! {
        div.field { label for="item-title" { "Title" } input #item-title name="title" required maxlength="200" dir="auto" value=(title); }
        div.field { label for="item-body" { "Text" } textarea #item-body name="body" rows="8" required dir="auto" { "\n" (body) } }
    }
}

/// The field for the end of an item, with the end that it has: an empty one removes it.
fn expiry(page: &Page, at: Option<DateTime<Utc>>) -> Markup {
    let value = at.map(|at| page.view.form_moment(at)).unwrap_or_default();
    html! { div.field { label for="item-expiry" { "Expires, in " (page.view.zone()) "; empty for never" } input #item-expiry type=(time_field(&value)) name="time:expires_at" value=(value); } }
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Edict => "a rule for all agents",
        Kind::Record => "knowledge for all agents",
        Kind::Journal => "a note of one agent",
    }
}
