//! The request of a page, as the page sees it.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header::COOKIE, request::Parts},
};
use maud::{Markup, html};
use serde_json::Value;

use super::parts::View;
use crate::{
    http::{Problem, RouterState, pages::PageCaller},
    operations::{self, Operation},
};

/// Cookie with the operation that a form has just run.
pub(super) const DONE: &str = "done";

/// A request for a page: its caller, and how to show times, amounts and forms.
pub(super) struct Page {
    pub(super) caller: PageCaller,
    pub(super) view: View,
    pub(super) theme: Option<Theme>,
    /// The operation that a form ran before it went on to this page.
    pub(super) done: Option<Done>,
    /// Path and query.
    pub(super) target: String,
}

/// An operation that has been run, and the number of things that it changed, if it says one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) operation: &'static str,
    pub(super) count: Option<u64>,
}

impl Page {
    /// Links to the page that shows what an operation reads. Callers who may not read it get the words alone.
    pub(super) fn link<O: Operation>(&self, target: &str, words: &Markup) -> Markup {
        match self.caller.may_reach(&O::SPEC) {
            true => html! { a href=(target) { (words) } },
            false => words.clone(),
        }
    }
}

impl Done {
    /// Reads the value of the cookie: `replay_webhook.3`.
    fn read(text: &str) -> Option<Self> {
        let (id, count) = text.split_once('.').unwrap_or((text, ""));
        Some(Self { operation: known_operation(id)?, count: count.parse().ok() })
    }

    /// Returns the cookie with which the next page confirms the operation.
    pub(super) fn cookie(operation: &str, output: &Value) -> String {
        let count = output["replayed"].as_u64().map(|count| format!(".{count}"));
        let count = count.unwrap_or_default();
        format!("{DONE}={operation}{count}; Path=/; Max-Age=20; HttpOnly; SameSite=Strict")
    }
}

/// A theme that the person has chosen; otherwise it is that of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
}

pub(super) type PageResult = Result<axum::response::Response, Problem>;

impl FromRequestParts<RouterState> for Page {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &RouterState) -> Result<Self, Problem> {
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let theme = Theme::of(&parts.headers);
        let done = cookie(&parts.headers, DONE).and_then(Done::read);
        let caller = PageCaller::from_request_parts(parts, front).await?;
        let view = View::of(&caller);
        Ok(Self { caller, view, theme, done, target })
    }
}

impl Theme {
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        match cookie(headers, "theme")? {
            "light" => Some(Self::Light),
            "dark" => Some(Self::Dark),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).map(str::trim);
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn known_operation(id: &str) -> Option<&'static str> {
    operations::ALL.iter().map(|entry| entry.spec.id).find(|known| *known == id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cookie_of_an_operation_has_the_number_of_changed_things() {
        let read = |operation: &str, output: &Value| {
            let cookie = Done::cookie(operation, output);
            let value = cookie.strip_prefix("done=").unwrap().split(';').next().unwrap();
            Done::read(value).map(|done| (done.operation, done.count))
        };
        let replayed = json!({ "replayed": 3 });
        assert_eq!(read("replay_webhook", &replayed), Some(("replay_webhook", Some(3))));
        assert_eq!(read("enable_webhook", &json!({})), Some(("enable_webhook", None)));
        assert_eq!(read("<b>", &json!({})), None);
    }
}
