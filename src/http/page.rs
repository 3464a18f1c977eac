//! Lists in pages. A page says where the next one begins; whoever reads on from there misses nothing that was there when
//! the reading began.

use axum::http::StatusCode;
use serde::Serialize;
use uuid::Uuid;

use super::Problem;
use crate::domain::Page;

const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Listing<T> {
    items: Vec<T>,
    /// What `cursor` has to be for the next page; null on the last one.
    next: Option<String>,
}

/// How many items a page has.
pub(super) fn limit(asked: Option<i64>) -> Result<i64, Problem> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("limit is {limit}, but has to be from 1 to {MAX_LIMIT}");
    Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail))
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
