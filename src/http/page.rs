//! Lists in pages. A page says where the next one begins; a reader that goes on from there misses no row that existed when it began.

use serde::Serialize;
use uuid::Uuid;

use super::Problem;
use crate::{domain::Page, operations};

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Listing<T> {
    items: Vec<T>,
    /// What `cursor` has to be for the next page; null on the last one.
    next: Option<String>,
}

/// How many items a page has.
pub(super) fn limit(asked: Option<i64>) -> Result<i64, Problem> {
    Ok(operations::page_limit(asked)?)
}

/// One more than the page has: whether there is another page is seen by that.
pub(super) fn page(cursor: Option<Uuid>, limit: i64) -> Page {
    Page { after: cursor, limit: limit + 1 }
}

impl<T> Listing<T> {
    /// `rows` were asked for with one more than `limit`.
    pub(super) fn of<C: ToString>(mut rows: Vec<T>, limit: i64, cursor: impl Fn(&T) -> C) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| cursor(last).to_string());
        Self { items: rows, next }
    }
}
