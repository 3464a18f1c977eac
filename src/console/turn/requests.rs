//! The request of a call as it was sent, and calls that are made again.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, counted, duration, rendered, section, title, wide},
    },
    domain::{class::Kind, reruns::Rerun},
    operations::{ListReruns, Refusal, RerunTurn, SentContext, ShowContext},
};

/// Longest request in a page.
const BODY_MAX_CHARS: usize = 60_000;

pub(super) async fn sent(page: &Page, id: Uuid, number: i32, call: i32) -> Result<Markup, Refusal> {
    let ask = ShowContext { id, turn: Some(number), call: Some(call) };
    let Some(sent) = page.caller.run_if_allowed(ask).await? else { return Ok(html! {}) };
    let body = sent.request.as_ref().map(|request| request.body.clone()).unwrap_or_default();
    let short: String = pretty(&body).chars().take(BODY_MAX_CHARS).collect();
    let command = format!("dalsegno context show {id} --turn {number} --call {call}");
    let shown = html! {
        @if let Some(problem) = &sent.problem { p."soft small" { (problem) } }
        @if let Some(request) = &sent.request { p."small soft" { @if let Some(url) = &request.url { code { bdi { (url) } } " · " } (request.body.len()) " bytes, SHA-256 " code { (request.sha256) } } }
        @if !short.is_empty() { pre."code wrap after" tabindex="0" dir="auto" { (short) } }
        @if sent.request.is_none() { (texts(&sent)) }
        p."small soft after" { "All bytes: " code { (command) } }
    };
    Ok(html! { div #request { (section("Request as sent", &html! { "call " (call) }, &shown)) } })
}

/// Shows the texts that a model got without a request over the network.
pub(super) fn texts(sent: &SentContext) -> Markup {
    html! {
        @if let Some(system) = &sent.system { details { summary { "System: " (title(system)) } pre."code wrap" dir="auto" { (system) } } }
        @for message in &sent.messages {
            details { summary { (format!("{:?}: ", message.role)) (title(&message.text)) } pre."code wrap" dir="auto" { (message.text) } }
        }
    }
}

/// Indents JSON; other bodies stay as they are.
fn pretty(body: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(body);
    parsed.and_then(|json| serde_json::to_string_pretty(&json)).unwrap_or_else(|_| body.to_owned())
}

/// The button that makes the call again.
pub(super) fn rerun(page: &Page, id: Uuid, number: i32, call: i32) -> Markup {
    let (given, number, call) = (id.to_string(), number.to_string(), call.to_string());
    let fields = [("id", given.as_str()), ("number", &number), ("call", &call)];
    let here = format!("/sessions/{given}/turns/{number}");
    let confirmation = Confirmation {
        action: Action::of::<RerunTurn>("Rerun", "retry", &fields, &here),
        id: "confirm-rerun",
        heading: "Make this call again",
        consequences: html! { p { "A worker sends the same context. The conversation does not change, tools are not run, and a model with a price is paid from the campaign's budget for experiments." } },
        fields: html! {
            div.field { label for="rerun-times" { "Number of reruns, up to 20" } input #rerun-times name="times" type="number" min="1" max="20" value="1"; }
            div.field { label for="rerun-model" { "Another model of the same provider; empty for the same one" } input #rerun-model name="model" maxlength="200"; }
            div.field { label for="rerun-temperature" { "Temperature; empty for that of the call" } input #rerun-temperature name="temperature" type="number" min="0" max="2" step="0.1"; }
        },
        command: format!("dalsegno turn rerun {given} {number} --call {call}"),
    };
    confirmation.button(&page.view, &page.caller)
}

/// The reruns of a call, with their answers.
pub(super) async fn reruns(
    page: &Page,
    id: Uuid,
    number: i32,
    call: i32,
) -> Result<Markup, Refusal> {
    let found = page.caller.run_if_allowed(ListReruns { id, number, call: Some(call) }).await;
    let reruns = match found {
        Ok(Some(found)) => found.reruns,
        // The turn has no call that could be made again.
        Ok(None) => Vec::new(),
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict | Kind::Invalid) => {
            Vec::new()
        }
        Err(refusal) => return Err(refusal),
    };
    if reruns.is_empty() {
        return Ok(html! {});
    }
    let table = html! {
        table.folds {
            thead { tr { th { "No." } th { "Answer" } th { "Model" } th { "Made" } th.num { "Took" } } }
            tbody { @for rerun in &reruns { (row(page, rerun)) } }
        }
    };
    Ok(section(
        "Reruns",
        &html! { (counted(reruns.len(), "rerun", "reruns")) },
        &wide("Reruns", &table),
    ))
}

fn row(page: &Page, rerun: &Rerun) -> Markup {
    let took = rerun.ended_at.map(|at| duration(at - rerun.created_at));
    html! {
        tr {
            td { (rerun.number) }
            td.text { @match &rerun.answer { Some(answer) => details { summary { (title(answer)) } (rendered(answer)) }, None => span.soft { "not answered yet" } } }
            td { bdi { (rerun.model) } @if let Some(temperature) = rerun.temperature { ", temperature " (temperature) } }
            td { (page.view.time(rerun.created_at)) }
            td.num { (took.unwrap_or_default()) }
        }
    }
}
