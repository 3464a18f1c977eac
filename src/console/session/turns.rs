//! All turns of a session, each with the result of assembling its calls again.

use std::collections::BTreeMap;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{Tone, agent_name, counted, empty, id, next_page, no_price, section, tokens, wide},
        turn::turn_state,
    },
    domain::turns::ListedTurn,
    operations::{ContextState, ListTurns, Refusal, ShowSession, VerifiedCall, VerifyContexts},
};

/// Turns of a page: as many as one verification reads.
const PAGE: i64 = 20;

#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct PageQuery {
    cursor: Option<i32>,
    /// `true` assembles the stored calls again, and compares them with what was sent.
    #[serde(default)]
    verify: String,
}

pub(in crate::console) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let session = page.caller.run(ShowSession { id: given }).await?.session;
    let list = ListTurns { id: given, cursor: query.cursor, limit: Some(PAGE) };
    let listing = page.caller.run(list).await?;
    let is_verified = query.verify == "true";
    let verified = match is_verified {
        true => verify(&page, given, &listing.items).await?,
        false => BTreeMap::new(),
    };
    let here = format!("/sessions/{given}/turns");
    let name = format!("Turns of {}", agent_name(&session.agent, &session.instance));
    let cursor = query.cursor.map(|it| format!("&cursor={it}")).unwrap_or_default();
    let is_whole = query.cursor.is_none() && listing.next.is_none();
    // The numbers of turns go on from the session before.
    let oldest = listing.items.last().map(|listed| listed.turn.number).or(query.cursor);
    let earlier = oldest.map_or(session.turns, |number| number - 1);
    let body = html! {
        div.head {
            div { h1 { bdi { (name) } } div.meta { span { @if is_whole { (counted(listing.items.len(), "turn", "turns")) } @else if session.predecessor_id.is_some() { "up to turn " (session.turns) } @else { (counted(session.turns, "turn", "turns")) } } (id("session", given)) } }
            div.actions { @if !is_verified && !listing.items.is_empty() { a.btn href={ (here) "?verify=true" (cursor) } { "Verify these contexts" } } }
        }
        @if listing.items.is_empty() {
            (empty("No turn has begun in this session.", &format!("dalsegno turn ls {given}")))
        } @else {
            (section("Turns, newest first", &html! { (listing.items.len()) }, &wide("Turns", &table(&page, &listing.items, is_verified.then_some(&verified)))))
            @if is_verified { p."small soft after" { "Each stored call was assembled again and compared with the request, byte for byte. The same in a terminal: " code { "dalsegno context verify " (given) } } }
        }
        @if let (Some(before), true, None) = (session.predecessor_id, earlier > 0, &listing.next) {
            p."small soft after" { (counted(earlier, "earlier turn", "earlier turns")) ": " a rel="prev" href={ "/sessions/" (before) "/turns" } { "in the session before" } }
        }
        (next_page(&here, &[("verify", &query.verify)], listing.next.as_deref()))
    };
    let path = html! { a href={ "/campaigns/" (session.campaign_id) } { "Campaign" } span { "/" } a href={ "/sessions/" (given) } { "Session" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

/// Verifies the calls of the turns of a page, by the number of their turn.
async fn verify(
    page: &Page,
    given: Uuid,
    turns: &[ListedTurn],
) -> Result<BTreeMap<i32, Vec<VerifiedCall>>, Refusal> {
    let Some(oldest) = turns.last() else { return Ok(BTreeMap::new()) };
    let ask = VerifyContexts { id: given, cursor: Some(oldest.turn.number - 1), limit: Some(PAGE) };
    let mut all: BTreeMap<i32, Vec<VerifiedCall>> = BTreeMap::new();
    for call in page.caller.run(ask).await?.items {
        all.entry(call.turn).or_default().push(call);
    }
    Ok(all)
}

fn table(
    page: &Page,
    turns: &[ListedTurn],
    verified: Option<&BTreeMap<i32, Vec<VerifiedCall>>>,
) -> Markup {
    let money = page.view.column(turns.iter().map(|listed| listed.turn.cost_micros));
    let row = |ListedTurn { turn, model, is_unpriced, .. }: &ListedTurn| {
        let calls = verified.map(|all| all.get(&turn.number).map_or(&[][..], Vec::as_slice));
        html! {
            tr {
                td { (turn_state(turn)) }
                td { a href={ "/sessions/" (turn.session_id) "/turns/" (turn.number) } { "turn " (turn.number) } " of " a href={ "/tasks/" (turn.task_id) } { (id("task", turn.task_id)) } }
                td.narrow-off { bdi { (model) } }
                td { (page.view.time(turn.started_at)) }
                td.num { (tokens(turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens)) }
                td.num { (tokens(turn.output_tokens)) }
                td.num { @if *is_unpriced { (no_price()) } @else { (money(turn.cost_micros)) } }
                @if let Some(calls) = calls { td { (verdicts(calls)) } }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Turn" } th.narrow-off { "Model" } th { "Begun" } th.num { "Tokens in" } th.num { "Out" } th.num { "Cost" } @if verified.is_some() { th { "Context" } } } }
            tbody { @for turn in turns { (row(turn)) } }
        }
    }
}

fn verdicts(calls: &[VerifiedCall]) -> Markup {
    html! {
        @if calls.is_empty() { span.faint { "not stored" } }
        @for call in calls {
            @let problem = call.problem.as_deref();
            @match call.state {
                ContextState::Exact => (Tone::Done.state("exact", None)),
                ContextState::NoRequest => (Tone::Done.state("all texts", Some("no request was sent"))),
                ContextState::Erased => (Tone::Cancelled.state("erased", problem)),
                ContextState::Differs => (Tone::Failed.state("differs", problem)),
                ContextState::UnknownVersion => (Tone::Waiting.state("unknown version", problem)),
            }
            " "
        }
    }
}
