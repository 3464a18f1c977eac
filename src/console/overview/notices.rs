//! Notices of what needs a person, for the icon and the notifications of a browser.

use axum::{Json, response::IntoResponse as _};
use serde::Serialize;

use super::attention::{look, target};
use crate::{
    console::{
        page::{Page, PageResult},
        parts::title,
    },
    domain::attention::Attention,
    operations::ShowOverview,
};

#[derive(Debug, Serialize)]
struct Notices {
    items: Vec<Notice>,
}

/// A thing that needs a person.
#[derive(Debug, Serialize)]
struct Notice {
    /// Stays the same until the thing is resolved. A later failure of the same task is another one.
    key: String,
    title: String,
    text: String,
    target: String,
}

/// Lists what needs a person. A caller who may not see the overview gets an empty list.
pub(in crate::console) async fn list(page: Page) -> PageResult {
    let overview = page.caller.run_if_allowed(ShowOverview { hours: None }).await?;
    let attention = overview.map(|overview| overview.attention).unwrap_or_default();
    let items = attention.iter().map(Notice::of).collect();
    Ok(Json(Notices { items }).into_response())
}

impl Notice {
    fn of(item: &Attention) -> Self {
        let since = item.since.map(|at| at.timestamp_micros()).unwrap_or_default();
        let (_, word) = look(item.kind);
        Self {
            key: format!("{:?} {} {since}", item.kind, item.subject),
            title: format!("{word}: {}", title(&item.name)),
            text: title(&item.because),
            target: target(item).unwrap_or_else(|| "/".to_owned()),
        }
    }
}
