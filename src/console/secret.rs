//! A new secret, which is shown once.

use axum::response::Response;
use maud::html;

use super::{layout::Content, page::Page};
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
