//! API keys: their scopes and their use; a new one is shown once.

use axum::{
    extract::{Path, Query},
    response::Response,
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    groups,
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tone, campaign_id, empty, id, next_page, optional, page_form,
        section, wide,
    },
    secret,
};
use crate::{
    domain::keys::{Key, Scope},
    http::{Problem, pages::PageForm},
    operations::{CreateKey, ListKeys, RevokeKey, RotateKey},
};

const HERE: &str = "/keys";
const A_DAY: u32 = 86_400;
/// Lifetimes of the form, in days.
const LIFETIMES: [(&str, &str); 4] =
    [("90", "90 days"), ("30", "30 days"), ("365", "a year"), ("", "unlimited")];

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    cursor: Option<Uuid>,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let list = ListKeys { named: None, cursor: query.cursor, limit: None };
    let listing = page.caller.run(list).await?;
    let n_valid = listing.items.iter().filter(|key| is_valid(&page, key)).count();
    let body = html! {
        div.head { div { h1 { "API keys" } div.meta { span { "Programs and people sign in with a key. It can do what its scopes allow" } } } }
        (groups::keys(HERE))
        div.cols {
            div.stack {
                @if listing.items.is_empty() {
                    (empty("No key exists. Without one, the service listens on this host only.", "dalsegno key create NAME --scope operate"))
                } @else {
                    (section("Keys", &html! { (n_valid) " valid of " (listing.items.len()) }, &table(&page, &listing.items)))
                }
                (next_page(HERE, &[], listing.next.as_deref()))
            }
            aside."stack side" { (section("Create a key", &html! {}, &form(&page, &Names::load(&page).await?))) }
        }
    };
    let path = html! { span { "API keys" } };
    Ok(page.respond(Content { title: "API keys", path, body, watch: String::new() }).await?)
}

/// Creates a key, and shows its text once.
pub(super) async fn create(page: Page, form: PageForm) -> Result<Response, Problem> {
    let chosen = |scope: Scope| {
        form.fields.iter().any(|(field, value)| field == "scopes" && value == scope.as_str())
    };
    let campaigns = form.fields.iter().filter(|(field, _)| field == "campaigns");
    let campaigns = campaigns.flat_map(|(_, ids)| ids.split([',', ' '])).map(campaign_id);
    let campaigns: Vec<Option<Uuid>> = campaigns.collect::<Result<_, _>>()?;
    let campaigns: Vec<Uuid> = campaigns.into_iter().flatten().collect();
    let days = form.field("days").unwrap_or_default();
    let days: Option<u32> = optional("a number of days", days, |days| days.parse().ok())?;
    let create = CreateKey {
        name: form.field("name").unwrap_or_default().trim().to_owned(),
        scopes: Scope::ALL.into_iter().filter(|scope| chosen(*scope)).collect(),
        campaigns: Some(campaigns).filter(|campaigns| !campaigns.is_empty()),
        expires_in_secs: days.map(|days| days.saturating_mul(A_DAY)),
    };
    let heading = format!("The key {}", create.name);
    let created = page.caller.run(create).await?;
    let words = "Programs send it as `Authorization: Bearer`, people sign in with it.";
    secret::show(&page, &heading, words, &created.secret, HERE).await
}

/// Creates the successor of a key, and shows its text once.
pub(super) async fn rotate(
    Path(given): Path<Uuid>,
    page: Page,
    _: PageForm,
) -> Result<Response, Problem> {
    let rotated = page.caller.run(RotateKey { id: given, overlap_secs: A_DAY }).await?;
    let heading = format!("The new key {}", rotated.key.name);
    let words = "The old key stays valid for 24 hours.";
    secret::show(&page, &heading, words, &rotated.secret, HERE).await
}

fn form(page: &Page, names: &Names) -> Markup {
    let fields = html! {
        div.field { label for="name" { "Name" } input #name name="name" required maxlength="100" placeholder="shop"; }
        fieldset.choices {
            legend { "Scopes" }
            @for scope in Scope::ALL { label { input type="checkbox" name="scopes" value=(scope.as_str()); " " b { (scope.as_str()) } " " span.faint { (meaning(scope)) } } }
        }
        div.field { label for="days" { "Lifetime" } select #days name="days" { @for (value, words) in LIFETIMES { option value=(value) { (words) } } } }
        div.field { label for="campaigns" { "Only these campaigns; all, if none is chosen" } select #campaigns name="campaigns" multiple size="4" { (names.options("")) } }
        @if names.are_cut() { div.field { label for="older-campaigns" { "Ids of older campaigns, with spaces between them" } input #older-campaigns name="campaigns" autocomplete="off"; } }
        div."actions after" { button.btn.primary { "Create" } }
    };
    page_form(&page.view, HERE, &fields)
}

fn meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "looks at everything but keys and the audit log",
        Scope::Enqueue => "adds tasks and sees its own",
        Scope::Operate => "cancels, pauses, retries; includes read and enqueue",
        Scope::Admin => "everything",
        Scope::Mcp => "the tools that models use",
    }
}

fn is_valid(page: &Page, key: &Key) -> bool {
    key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > page.view.now)
}

fn table(page: &Page, keys: &[Key]) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Name" } th { "Scopes" } th { "Reaches" } th { "Last used" } th { "Expires" } th {} } }
            tbody { @for (n, key) in keys.iter().enumerate() { (row(page, n, key)) } }
        }
    };
    wide("API keys", &table)
}

fn row(page: &Page, n: usize, key: &Key) -> Markup {
    let given = key.id.to_string();
    let fields = [("id", given.as_str())];
    let sheet = format!("revoke-{n}");
    let revoke = Confirmation {
        action: Action::of::<RevokeKey>("Revoke", "", &fields, HERE).class("btn slim danger"),
        id: &sheet,
        heading: "Revoke this key",
        consequences: html! { p { "All processes refuse it within 5 seconds, and its sign-ins end. It cannot be undone." } },
        fields: html! {},
        command: format!("dalsegno key revoke {given}"),
    };
    let state = match (key.revoked_at, is_valid(page, key)) {
        (Some(_), _) => Tone::Cancelled.state("revoked", None),
        (None, false) => Tone::Done.state("expired", None),
        (None, true) => Tone::Running.state("valid", None),
    };
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    html! {
        tr {
            td { (state) }
            td.text.name { b { bdi { (key.name) } } div."tiny faint" { code { (key.handle) } " by " bdi { (key.created_by) } " " (page.view.time(key.created_at)) @if let Some(next) = key.replaced_by { ", replaced by " (id("", next)) } } }
            td { (scopes.join(", ")) }
            td { @match &key.campaigns { None => "all campaigns", Some(ids) => { @for id in ids.iter().take(3) { a href={ "/campaigns/" (id) } { (super::parts::id("", *id)) } " " } @if ids.len() > 3 { "and " (ids.len() - 3) " more" } } } }
            td { @match key.last_used_at { Some(at) => (page.view.time(at)), None => span.faint { "never" } } }
            td { @match key.expires_at { Some(at) => (page.view.time(at)), None => span.faint { "never" } } }
            td {
                @if is_valid(page, key) {
                    div.actions {
                        @if key.replaced_by.is_none() { (secret::renewal(page, "Rotate", &format!("rotate-{n}"), &format!("{HERE}/{given}/rotate"), "btn slim", "A new key takes its place. The old one stays valid for 24 hours.")) }
                        (revoke.button(&page.view, &page.caller))
                    }
                }
            }
        }
    }
}
