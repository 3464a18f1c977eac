//! The form in which a person exchanges an API key for a cookie.

use std::borrow::Cow;

use axum::{
    extract::Query,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::{layout, page::Theme, parts::url_text, problem};
use crate::http::{
    Problem,
    pages::{FailedRequest, FormToken, TOKEN_FIELD},
};

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    /// The page to go on to.
    #[serde(default)]
    next: String,
}

pub(super) async fn show(
    Query(query): Query<PageQuery>,
    token: FormToken,
    headers: HeaderMap,
) -> Response {
    form(StatusCode::OK, &token.0, &query.next, Theme::of(&headers), &html! {})
}

/// Shows the form again, with the reason of the refusal.
pub(super) fn refused(problem: &Problem, failed: &FailedRequest, theme: Option<Theme>) -> Response {
    let next = next_of(&failed.target);
    form(problem.status, &failed.form_token, &next, theme, &problem::block(problem))
}

/// Returns the page to go on to from the address of the form: a refusal does not have its fields.
fn next_of(target: &str) -> Cow<'_, str> {
    let next = target.split_once("?next=").map_or("", |(_, next)| next);
    percent_decode_str(next).decode_utf8_lossy()
}

fn form(
    status: StatusCode,
    token: &str,
    next: &str,
    theme: Option<Theme>,
    error: &Markup,
) -> Response {
    let target = match next {
        "" => "/sign-in".to_owned(),
        next => format!("/sign-in?next={}", url_text(next)),
    };
    let body = html! {
        h1 { "Sign in" }
        p.soft { "Paste an API key. The console can do what the key allows, until the key expires, for at most 12 hours." }
        (error)
        form method="post" action=(target) {
            input type="hidden" name=(TOKEN_FIELD) value=(token);
            input type="hidden" name="next" value=(next);
            div.field {
                label for="key" { "API key" }
                input #key name="key" type="password" autocomplete="current-password" placeholder="dals_…" required autofocus;
            }
            div.actions.after { button.btn.primary { "Sign in" } }
        }
        div.empty { "No key? An administrator creates one on the server." code { "dalsegno key create NAME --scope operate" } }
    };
    layout::bare(status, "Sign in", theme, &body)
}
