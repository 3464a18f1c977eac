//! Errors as pages: what failed, why, and the next step.

use axum::{
    http::{
        HeaderValue, Method, StatusCode,
        header::{CONTENT_TYPE, REFERER},
    },
    response::{Html, IntoResponse as _, Response},
};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;

use super::{
    headers, layout,
    page::Theme,
    parts::{icon, linked_words, url_text},
    sign_in,
};
use crate::{
    domain::ids::PartialId,
    http::{
        Problem,
        pages::{FailedRequest, TOKEN_FIELD, local_target, see_other},
    },
};

/// The code of the problem of an address without a page.
const UNKNOWN_ADDRESS: &str = "not_found";

/// Shows a problem to a browser: as a page, as a part of one, or as the way to the sign-in.
pub(super) fn show(failed: &FailedRequest, problem: &Problem) -> Response {
    headers::with_security(respond(failed, problem))
}

fn respond(failed: &FailedRequest, problem: &Problem) -> Response {
    let theme = Theme::of(&failed.headers);
    let path = failed.target.split('?').next().unwrap_or_default();
    match (problem.code, failed.is_fragment) {
        // What is written on the page would be lost with it.
        ("not_signed_in" | "unauthenticated", true) => {
            (problem.status, Html(signed_out().into_string())).into_response()
        }
        ("not_signed_in" | "unauthenticated", false) => see_other(&sign_in_path(failed)),
        _ if path == "/sign-in" && failed.method == Method::POST => {
            sign_in::refused(problem, failed, theme)
        }
        ("stale_form", true) if !failed.form_token.is_empty() => {
            let shown = renewed_forms(problem, &failed.form_token);
            (problem.status, Html(shown.into_string())).into_response()
        }
        (_, true) => (problem.status, Html(block(problem).into_string())).into_response(),
        (_, false) => {
            let request_id = problem.request_id.clone();
            // The words of the API name its routes.
            let unknown =
                (problem.code == UNKNOWN_ADDRESS).then(|| Problem { request_id, ..not_found() });
            let body = html! {
                (block(unknown.as_ref().unwrap_or(problem)))
                @let back = came_from(failed);
                @if back.is_some() && has_files(failed) { p."small soft" { "Files have to be chosen again: a browser does not keep them." } }
                div.actions {
                    @if let Some(back) = &back { a.btn.primary href=(back) { "Back" } }
                    a.btn.primary[back.is_none()] href="/" { "Overview" }
                    @let words = search_words(problem.code, path);
                    @if !words.is_empty() { a.btn href={ "/find?q=" (url_text(&words)) } { (icon("search")) "Find “" bdi { (words) } "”" } }
                    @if failed.method == Method::GET && problem.retryable { a.btn href=(failed.target) { (icon("retry")) "Try again" } }
                }
            };
            layout::bare(problem.status, problem.title, theme, &body)
        }
    }
}

/// Longest words of an address that are searched for.
const WORDS_MAX_CHARS: usize = 100;

/// Returns the words with which to search for the thing at an address; nothing if the address is right and the problem another one.
fn search_words(code: &str, path: &str) -> String {
    match code {
        UNKNOWN_ADDRESS | "bad_address" => words_of(path),
        // Something else may have the id.
        "unknown_id" => {
            let mut parts = path.split('/');
            let id = parts.find(|part| part.parse::<PartialId>().is_ok());
            id.unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// Returns the words of an address, for a search.
fn words_of(path: &str) -> String {
    let text = percent_decode_str(path).decode_utf8_lossy();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(WORDS_MAX_CHARS).collect()
}

/// Returns the page with the form that was refused.
fn came_from(failed: &FailedRequest) -> Option<String> {
    let from = failed.headers.get(REFERER)?.to_str().ok()?;
    let path = &from[from.find("://")? + 3..];
    let target = &path[path.find('/')?..];
    (failed.method == Method::POST && local_target(Some(target)) == target)
        .then(|| target.to_owned())
}

/// Returns true if the form that was refused takes files.
fn has_files(failed: &FailedRequest) -> bool {
    let kind = failed.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"multipart/form-data"))
}

/// Renders the failure and the next step.
pub(super) fn block(problem: &Problem) -> Markup {
    let detail = sentence(&problem.detail);
    html! {
        section.error {
            h2 { (problem.title) }
            p dir="auto" { (linked_words(&detail)) }
            @if let Some((target, words)) = next_step(&problem.detail) { p { a href=(target) { (words) } } }
            @for wrong in &problem.errors { p { code { (wrong.pointer) } " " (wrong.detail) } }
            p.tiny { code { (problem.code) } @if let Some(id) = &problem.request_id { " · request " code { (id) } } }
        }
    }
}

/// Asks for a sign-in in another tab.
fn signed_out() -> Markup {
    html! {
        section.error {
            h2 { "You are signed out" }
            p { "Nothing was done, and this page keeps what is written on it." }
            p { a href="/sign-in" target="_blank" { "Sign in in another tab" } ", then try again here." }
        }
    }
}

/// Puts the present token into all forms of the page, so that the next try is accepted.
fn renewed_forms(problem: &Problem, token: &str) -> Markup {
    let detail = "this page was opened before the sign-in, and nothing was done: the page is renewed now, so try again";
    html! {
        (block(&Problem { detail: detail.to_owned(), ..problem.clone() }))
        input type="hidden" name=(TOKEN_FIELD) value=(token) hx-swap-oob={ "outerHTML:[name=" (TOKEN_FIELD) "]" };
    }
}

/// Commands, with the page on which people do the same. `{}` is the word after the command.
const PAGES: [(&str, &str, &str); 14] = [
    ("campaign budget ", "/campaigns/{}", "The budget of the campaign"),
    ("campaign resume ", "/campaigns/{}", "The campaign"),
    ("campaign create", "/campaigns", "The campaigns"),
    ("campaign ls", "/campaigns", "The campaigns"),
    ("task ls", "/tasks", "The tasks"),
    ("task show ", "/tasks/{}", "The task"),
    ("task budget ", "/tasks/{}", "The budget of the task"),
    ("task retry ", "/tasks/{}", "The task"),
    ("flow resume ", "/flows/{}", "The flow"),
    ("context verify ", "/sessions/{}/turns?verify=true", "The turns that can be sent again"),
    ("job ls", "/work/jobs", "The jobs"),
    ("budget ", "/cost/budgets", "The budgets"),
    ("webhook ls", "/webhooks", "The webhooks"),
    ("agent resume", "/catalogue", "The agents"),
];

/// Finds the page of the command that an error names.
fn next_step(detail: &str) -> Option<(String, &'static str)> {
    let commands = detail.split('`').skip(1).step_by(2);
    let mut own = commands.filter_map(|command| command.strip_prefix("dalsegno "));
    own.find_map(|command| {
        let (start, page, words) = PAGES.iter().find(|(start, ..)| command.starts_with(start))?;
        let subject = command[start.len()..].split(' ').next().unwrap_or_default();
        Some((page.replace("{}", &url_text(subject)), *words))
    })
}

/// Builds the problem of an unknown path of the console.
pub(super) fn not_found() -> Problem {
    let detail = "there is no page at this path: the overview links to all pages";
    Problem::new(StatusCode::NOT_FOUND, UNKNOWN_ADDRESS, detail)
}

fn sign_in_path(failed: &FailedRequest) -> String {
    match failed.method == Method::GET && failed.target != "/" {
        true => format!("/sign-in?next={}", url_text(&failed.target)),
        false => "/sign-in".to_owned(),
    }
}

/// Begins with a capital and ends with a full stop, as sentences of pages do.
fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let rest = chars.as_str();
    let end = if rest.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{first}{rest}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_address_are_decoded() {
        assert_eq!(words_of("/rate-limits/caf%C3%A9_2%"), "rate limits café 2");
        assert_eq!(words_of("/%3Cb%3E"), "b");
        assert_eq!(words_of("/%+1/%é"), "1 é");
        assert_eq!(words_of("/"), "");
    }

    #[test]
    fn an_error_leads_to_the_page_of_its_command() {
        let target = |detail: &str| next_step(detail).map(|(target, _)| target);
        let budget = "no budget: `dalsegno campaign budget 019a --experiments 1` sets one";
        assert_eq!(target(budget).as_deref(), Some("/campaigns/019a"));
        assert_eq!(target("see `a b`, then `dalsegno job ls`").as_deref(), Some("/work/jobs"));
        assert_eq!(target("`dalsegno task show` 'x'"), None);
    }
}
