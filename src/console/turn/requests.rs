//! The request of a call as it was sent.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{section, title},
    },
    operations::{Refusal, SentContext, ShowContext},
    transcript::Role,
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
        @if sent.request.is_none() {
            @if sent.problem.is_none() { p."soft small" { "The model is simulated: nothing was sent over the network. The model got these texts." } }
            (texts(&sent))
        }
        p."small soft after" { "All bytes: " code { (command) } @if sent.request.as_ref().is_some_and(|it| it.url.is_some()) { ", as a command: " code { (command) " --curl" } } }
    };
    Ok(html! { div #request { (section("Request as sent", &html! { "call " (call) }, &shown)) } })
}

/// Shows the texts that a model got without a request over the network.
pub(super) fn texts(sent: &SentContext) -> Markup {
    html! {
        @if let Some(system) = &sent.system { details { summary { "System: " (title(system)) } pre."code wrap" dir="auto" { (system) } } }
        @for message in &sent.messages {
            details open[sent.messages.len() == 1] { summary { (role(message.role)) ": " (title(first_words(&message.text))) } pre."code wrap" dir="auto" { (message.text) } }
        }
    }
}

/// Returns the first line that is no element around other texts, such as the posts of the board.
fn first_words(text: &str) -> &str {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('<');
    text.lines().map(str::trim).find(is_text).unwrap_or(text)
}

/// Names the author of a text, as providers do.
fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool result",
        Role::Notice => "notice",
        Role::Posts => "posts",
    }
}

/// Indents JSON; other bodies stay as they are.
fn pretty(body: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(body);
    parsed.and_then(|json| serde_json::to_string_pretty(&json)).unwrap_or_else(|_| body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_named_by_its_words_and_not_by_the_element_around_them() {
        assert_eq!(first_words("<posts fence=\"a1\">\n<post>\nThe lamp.\n</post>"), "The lamp.");
        assert_eq!(first_words("<posts/>"), "<posts/>");
        assert_eq!(first_words("\nWrite part one."), "Write part one.");
    }
}
