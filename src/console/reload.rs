//! The answer to a link from another site, which opens the same address again: a browser sends its cookies only to what this page requests.

use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, html};

use super::headers;
use crate::http::pages::local_target;

/// Renders the page. It names its target: Chromium does not load its own address again if that has a fragment (`#result`). So the fragment
/// is lost, which no request has.
pub(super) fn show(target: &str) -> Response {
    let target = local_target(Some(target));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content={ "0;url=" (target) };
                title { "Dalsegno" }
            }
            body { p { a href=(target) { "Open the page" } } }
        }
    };
    headers::with_security(Html(page.into_string()).into_response())
}
