//! The list of sign-ins, for administrators.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    layout::Content,
    page::{Page, PageResult},
    parts::{Action, Tone, empty, id, next_page, section, wide},
};
use crate::{
    domain::{keys::Key, sign_ins::SignIn},
    operations::{EndSignIn, ListKeys, ListSignIns, MAX_LIMIT},
};

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    cursor: Option<Uuid>,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let listing = page.caller.run(ListSignIns { cursor: query.cursor, limit: None }).await?;
    let keys = ListKeys { named: None, cursor: None, limit: Some(MAX_LIMIT) };
    let keys = page.caller.run_if_allowed(keys).await?.map(|keys| keys.items).unwrap_or_default();
    let n_open = listing.items.iter().filter(|it| it.is_open(page.view.now)).count();
    let body = html! {
        div.head { div { h1 { "Sign-ins" } div.meta { span { "Browsers that have exchanged an API key for a cookie, of the last 30 days" } } } }
        (super::groups::keys("/sign-ins"))
        @if listing.items.is_empty() {
            (empty("No browser has signed in. Where no key is required, the console needs no sign-in.", "dalsegno sign-in ls"))
        } @else {
            (section("Sign-ins", &html! { (n_open) " open of " (listing.items.len()) }, &table(&page, &listing.items, &keys)))
            (next_page("/sign-ins", &[], listing.next.as_deref()))
        }
    };
    Ok(page
        .respond(Content {
            title: "Sign-ins",
            path: html! { a href="/keys" { "API keys" } span { "/" } span { "Sign-ins" } },
            body,
            watch: String::new(),
        })
        .await?)
}

/// Names the key that was exchanged, by its id if it is older than the keys that are known.
fn key_name(sign_in: &SignIn, keys: &[Key]) -> Markup {
    let Some(given) = sign_in.key_id else { return html! { "admin key" } };
    match keys.iter().find(|key| key.id == given) {
        Some(key) => html! { bdi { (key.name) } " " span."tiny faint" { (id("", given)) } },
        None => id("key", given),
    }
}

fn table(page: &Page, items: &[SignIn], keys: &[Key]) -> Markup {
    let own = page.caller.sign_in().map(|own| own.id);
    let row = |sign_in: &SignIn| {
        let is_open = sign_in.is_open(page.view.now);
        let given = sign_in.id.to_string();
        let fields = [("id", given.as_str())];
        let end = Action::of::<EndSignIn>("End", "", &fields, "/sign-ins").class("btn slim");
        let state = match (is_open, sign_in.ended_at) {
            (true, _) if own == Some(sign_in.id) => Tone::Running.state("this browser", None),
            (true, _) => Tone::Running.state("open", None),
            (false, Some(_)) => Tone::Done.state("ended", None),
            (false, None) => Tone::Done.state("expired", None),
        };
        html! {
            tr {
                td { (state) }
                td { (page.view.time(sign_in.created_at)) }
                td { (page.view.time(sign_in.expires_at)) }
                td { (key_name(sign_in, keys)) }
                td { (sign_in.peer.as_deref().unwrap_or_default()) }
                td.text { bdi { (sign_in.browser.as_deref().unwrap_or_default()) } }
                td.num { @if is_open { (end.button(&page.view, &page.caller)) } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Since" } th { "Expires" } th { "Key" } th { "From" } th { "Browser" } th {} } }
            tbody { @for item in items { (row(item)) } }
        }
    };
    wide("Sign-ins", &table)
}
