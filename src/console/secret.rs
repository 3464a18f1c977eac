//! A new secret, which is shown once.

use axum::response::Response;
use maud::{Markup, html};

use super::{layout::Content, page::Page, parts::page_form};
use crate::http::Problem;

/// Shows a secret with what to do with it, and the page to go on to.
pub(super) async fn show(
    page: &Page,
    heading: &str,
    words: &str,
    secret: &str,
    target: &str,
) -> Result<Response, Problem> {
    let body = html! {
        div.head { div { h1 { (heading) } } }
        p.lede { "It is shown only now. " (words) }
        div.copy { pre."code wrap" #secret data-copy tabindex="0" { (secret) } }
        div."actions after" { a."btn primary" href=(target) { "It is stored" } }
    };
    let path = html! { a href=(target) { "Back" } };
    Ok(page.respond(Content { title: heading, path, body, watch: String::new() }).await?)
}

/// Renders a button that asks before a secret is replaced.
pub(super) fn renewal(
    page: &Page,
    words: &str,
    sheet: &str,
    target: &str,
    class: &str,
    consequence: &str,
) -> Markup {
    let buttons = html! {
        div.actions {
            button.btn.primary { (words) }
            button.btn.quiet type="button" popovertarget=(sheet) popovertargetaction="hide" { "Close" }
        }
    };
    html! {
        button class=(class) popovertarget=(sheet) { (words) "…" }
        div.sheet id=(sheet) popover="auto" {
            h2 { (words) }
            p { (consequence) }
            (page_form(&page.view, target, &buttons))
        }
    }
}
