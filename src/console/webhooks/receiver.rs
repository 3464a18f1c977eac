//! The page of a webhook: its state, its deliveries and their replay.

use axum::{
    extract::{Path, Query},
    http::{HeaderMap, header::SET_COOKIE},
    response::{IntoResponse as _, Response},
};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::HERE;
use crate::{
    console::{
        actions::go_on,
        layout::Content,
        page::{Done, Page, PageResult},
        parts::{
            Action, Confirmation, Tone, coded, counted, empty, facts, icon, id, next_page,
            optional, section, title, url_text, wide,
        },
        secret,
    },
    domain::webhooks::{Delivery, State, Webhook},
    http::{Problem, pages::PageForm},
    operations::{
        CancelJob, DisableWebhook, EnableWebhook, ListDeliveries, Operation as _, RemoveWebhook,
        ReplayDelivery, ReplayWebhook, RotateWebhook, ShowDelivery, ShowWebhook, TestWebhook,
    },
};

const STATES: [(&str, State); 4] = [
    ("waiting", State::Waiting),
    ("delivered", State::Delivered),
    ("failed", State::Failed),
    ("held", State::Held),
];
const A_DAY: u32 = 86_400;

#[derive(Debug, Deserialize)]
pub(in crate::console) struct PageQuery {
    #[serde(default)]
    state: String,
    cursor: Option<Uuid>,
    /// A delivery that is shown as a whole.
    #[serde(default)]
    delivery: String,
}

pub(in crate::console) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let webhook = page.caller.run(ShowWebhook { id: given }).await?;
    let state = STATES.into_iter().find(|(word, _)| *word == query.state).map(|(_, state)| state);
    let list = ListDeliveries {
        webhook_id: Some(given),
        task_id: None,
        state,
        cursor: query.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let chosen = match optional("the id of a delivery", &query.delivery, |id| id.parse().ok())? {
        Some(id) => Some(page.caller.run(ShowDelivery { id }).await?),
        None => None,
    };
    let missed_since = match webhook.failing_since {
        Some(since) => page.caller.oldest_missed(given, since).await?,
        None => None,
    };
    let here = format!("{HERE}/{given}");
    let listed = match query.state.as_str() {
        "" => here.clone(),
        state => format!("{here}?state={}", url_text(state)),
    };
    let more = if listing.next.is_some() { "first " } else { "" };
    let end = html! { (more) (counted(listing.items.len(), "delivery", "deliveries")) };
    let name = title(&webhook.url);
    let body = html! {
        (head(&page, &webhook, &name))
        @if let Some(reason) = &webhook.disabled_because { @if !webhook.enabled {
            section."explain paused" #explain tabindex="-1" { (icon("paused")) div { p.lede { "The webhook is disabled: its deliveries are held until it is enabled." } p.next dir="auto" { (coded(reason)) } } }
        } }
        @if let (true, Some(at)) = (webhook.enabled, webhook.failing_since) {
            section."explain failed" #explain tabindex="-1" { (icon("failed")) div { p.lede { "The receiver refuses or misses each delivery. It began " (page.view.time(at)) "." } p.next { "Look at the error of the latest delivery, repair the receiver, then replay what it missed." } (replay_missed(&page, given, missed_since)) } }
        }
        div.cols {
            div.stack {
                @if let Some(delivery) = &chosen { (one(&page, delivery, &listed)) }
                div {
                    div.filters {
                        nav.choice aria-label="State" {
                            a href=(here) aria-current=[state.is_none().then_some("page")] { "all" }
                            @for (word, _) in STATES { a href={ (here) "?state=" (word) } aria-current=[(word == query.state).then_some("page")] { (word) } }
                        }
                    }
                    @if listing.items.is_empty() {
                        (empty("No delivery is in this list. Send a test, or wait for the end of a task.", &format!("dalsegno webhook test {given}")))
                    } @else {
                        (section("Deliveries", &end, &table(&page, &listing.items, &listed)))
                    }
                    (next_page(&here, &[("state", &query.state)], listing.next.as_deref()))
                }
            }
            aside."stack side" {
                (section("Facts", &html! {}, &webhook_facts(&page, &webhook)))
                (replay(&page, given))
            }
        }
    };
    let path = html! { a href=(HERE) { "Webhooks" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

/// Creates a new secret, and shows it once.
pub(in crate::console) async fn rotate(
    Path(given): Path<Uuid>,
    page: Page,
    _: PageForm,
) -> Result<Response, Problem> {
    let rotated = page.caller.run(RotateWebhook { id: given, overlap_secs: A_DAY }).await?;
    let words = "Store it at the receiver. For 24 hours the old secret signs, too.";
    let target = format!("{HERE}/{given}");
    secret::show(&page, "The new secret of the webhook", words, &rotated.secret, &target).await
}

/// Sends what was not delivered since a time again.
pub(in crate::console) async fn replay_since(
    Path(given): Path<Uuid>,
    page: Page,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, Problem> {
    let given_since = form.field("since").unwrap_or_default();
    let since = optional("a time", given_since, |text| page.view.moment(text))?;
    let since = since.unwrap_or_else(|| page.view.midnight());
    let replayed = page.caller.run(ReplayWebhook { id: given, since }).await?;
    let output = serde_json::to_value(&replayed).unwrap_or_default();
    let done = Done::cookie(ReplayWebhook::SPEC.id, &output);
    let next = go_on(&headers, &format!("{HERE}/{given}"));
    Ok(([(SET_COOKIE, done)], next).into_response())
}

fn head(page: &Page, webhook: &Webhook, name: &str) -> Markup {
    let given = webhook.id.to_string();
    let here = format!("{HERE}/{given}");
    let fields = [("id", given.as_str())];
    let test = Action::of::<TestWebhook>("Send a test", "", &fields, &here);
    let enable = Action::of::<EnableWebhook>("Enable", "", &fields, &here);
    let disable = Confirmation {
        action: Action::of::<DisableWebhook>("Disable", "paused", &fields, &here),
        id: "confirm-disable",
        heading: "Disable this webhook",
        consequences: html! { p { "Deliveries are held until it is enabled. They can be replayed then." } },
        fields: html! { div.field { label for="reason" { "Reason, shown while it is disabled" } input #reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno webhook disable {given}"),
    };
    let remove = Confirmation {
        action: Action::of::<RemoveWebhook>("Remove", "", &fields, HERE).class("btn danger"),
        id: "confirm-remove",
        heading: "Remove this webhook",
        consequences: html! { p { "Its deliveries and its secret are removed with it. It cannot be undone." } },
        fields: html! {},
        command: format!("dalsegno webhook rm {given}"),
    };
    let (view, caller) = (&page.view, &page.caller);
    html! {
        div.head {
            div { h1 { bdi { (name) } } div.meta { (super::state(webhook)) (id("webhook", webhook.id)) } }
            div.actions {
                @if webhook.enabled { (test.button(view, caller)) (disable.button(view, caller)) } @else { (enable.button(view, caller)) }
                @if caller.may(&RotateWebhook::SPEC) {
                    (secret::renewal(page, "New secret", "confirm-secret", &format!("{here}/rotate"), "btn", "Deliveries are signed with both secrets for 24 hours, then with the new one only."))
                }
                (remove.button(view, caller))
            }
        }
    }
}

fn webhook_facts(page: &Page, webhook: &Webhook) -> Markup {
    facts(&[
        ("Address", html! { bdi { (webhook.url) } }),
        ("Events", html! { (webhook.kinds.join(", ")) }),
        (
            "Of",
            html! { @match webhook.campaign_id { Some(id) => a href={ "/campaigns/" (id) } { "one campaign" }, None => "all campaigns" } },
        ),
        ("Since", page.view.time(webhook.created_at)),
        (
            "Two secrets",
            html! { @if let Some(at) = webhook.rotates_until { "until " (page.view.time(at)) } },
        ),
    ])
}

fn replay(page: &Page, given: Uuid) -> Markup {
    if !page.caller.may(&ReplayWebhook::SPEC) {
        return html! {};
    }
    let target = format!("{HERE}/{given}/replay");
    let form = html! {
        form method="post" action=(target) hx-post=(target) hx-target="#outcome" {
            (page.view.token())
            div.field { label for="since" { "All since this time, in " (page.view.zone()) ", that were not delivered; since midnight, if it is empty" } input #since type="datetime-local" name="since"; }
            div."actions after" { button.btn { "Replay" } }
            pre."code wrap after" { "dalsegno webhook replay --webhook " (given) " --since " (page.view.midnight().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)) }
        }
    };
    section("Replay", &html! {}, &form)
}

/// Sends what a failing receiver missed again, from the time of the oldest event on.
fn replay_missed(page: &Page, given: Uuid, missed_since: Option<DateTime<Utc>>) -> Markup {
    let Some(since) = missed_since.map(|at| at.to_rfc3339()) else { return html! {} };
    let id = given.to_string();
    let fields = [("id", id.as_str()), ("since", since.as_str())];
    let here = format!("{HERE}/{given}");
    let action = Action::of::<ReplayWebhook>("Replay", "", &fields, &here);
    html! { div.actions { (action.class("btn slim").button(&page.view, &page.caller)) } }
}

/// A delivery with its whole error.
fn one(page: &Page, delivery: &Delivery, here: &str) -> Markup {
    let time = |at: Option<DateTime<Utc>>| html! { @if let Some(at) = at { (page.view.time(at)) } };
    let (tone, word) = delivery_state(delivery.state);
    let rows = facts(&[
        ("State", tone.state(word, None)),
        ("Id", html! { code { (delivery.id) } }),
        ("Event", html! { (delivery.kind) }),
        ("Created", page.view.time(delivery.created_at)),
        ("Attempts", html! { (delivery.attempts) }),
        ("Next attempt", time(delivery.next_at)),
        ("Ended", time(delivery.ended_at)),
        ("Last status", html! { @if let Some(status) = delivery.last_status { (status) } }),
    ]);
    let body = html! { (rows) @if let Some(error) = &delivery.last_error { pre."code wrap after" dir="auto" { (error) } } };
    let end = html! { a href=(here) { "close" } };
    html! { div #delivery { (section("Delivery", &end, &body)) } }
}

fn delivery_state(state: State) -> (Tone, &'static str) {
    match state {
        State::Waiting => (Tone::Waiting, "waiting"),
        State::Delivered => (Tone::Done, "delivered"),
        State::Failed => (Tone::Failed, "failed"),
        State::Held => (Tone::Held, "held"),
    }
}

/// Ends the attempts of a waiting delivery. It can be replayed.
fn give_up(page: &Page, delivery: &Delivery, then: &str) -> Markup {
    let job = delivery.job_id.filter(|_| delivery.state == State::Waiting);
    let job = job.map(|id| id.to_string());
    let Some(job) = job.as_deref() else { return html! {} };
    let fields = [("id", job)];
    let (sheet, reason) = (format!("give-up-{job}"), format!("give-up-reason-{job}"));
    let action = Action::of::<CancelJob>("Give up", "", &fields, then).class("btn slim quiet");
    let give_up = Confirmation {
        action,
        id: &sheet,
        heading: "Give up this delivery",
        consequences: html! { p { "It is not sent again by itself. It can be replayed." } },
        fields: html! { div.field { label for=(reason) { "Reason, shown as its error" } input id=(reason) name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno job cancel {job}"),
    };
    give_up.button(&page.view, &page.caller)
}

fn table(page: &Page, items: &[Delivery], here: &str) -> Markup {
    let row = |delivery: &Delivery| {
        let given = delivery.id.to_string();
        let fields = [("id", given.as_str())];
        let join = if here.contains('?') { '&' } else { '?' };
        let own = format!("{here}{join}delivery={given}#delivery");
        // A first attempt is made at once; only a later one can be brought forward.
        let is_due = delivery.state == State::Waiting && delivery.next_at.is_none();
        let word = if delivery.state == State::Waiting { "Send now" } else { "Replay" };
        let replay = Action::of::<ReplayDelivery>(word, "", &fields, &own).class("btn slim");
        let (tone, word) = delivery_state(delivery.state);
        html! {
            tr {
                td { (tone.state(word, None)) }
                td { a href=(own) { (delivery.kind) } @if let Some(task) = delivery.task_id { div.tiny { a href={ "/tasks/" (task) } { (id("task", task)) } } } @else { div."tiny faint" { "test" } } }
                td { (page.view.time(delivery.created_at)) }
                td.num { (delivery.attempts) }
                td.text {
                    @if let Some(status) = delivery.last_status.filter(|_| delivery.last_error.is_none()) { (status) }
                    @if let Some(error) = &delivery.last_error { bdi { (coded(&title(error))) } }
                    @if let Some(at) = delivery.next_at { div."tiny faint" { "next attempt " (page.view.time(at)) } }
                }
                td.num {
                    @if !is_due { (replay.button(&page.view, &page.caller)) } @else if let Some(job) = delivery.job_id { a href={ "/work/jobs/" (job) } { "why it waits" } }
                    (give_up(page, delivery, &own))
                }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Event" } th { "Added" } th.num { "Attempts" } th { "Answer" } th {} } }
            tbody { @for delivery in items { (row(delivery)) } }
        }
    };
    wide("Deliveries", &table)
}
