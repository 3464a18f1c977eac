//! The job that computes the words of ended tasks for the search.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{
    domain::{StatementError, tasks},
    queue::{self, Job, Policy},
};

/// The lane of the job: one run at a time in the whole service, so that its share of the database's time is bounded.
const LANE: &str = "search";

/// Computes the words of all tasks of the backlog.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct IndexTexts {}

impl Job for IndexTexts {
    const KIND: &'static str = "index_texts";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

/// Enqueues the job with the caller's commit, unless there is nothing to do or one is waiting already.
pub async fn request_index(conn: &mut PgConnection) -> Result<(), StatementError> {
    if !tasks::has_search_backlog(&mut *conn).await? {
        return Ok(());
    }
    let enqueued = queue::enqueue_unless_waiting(conn, &IndexTexts {}, LANE).await;
    enqueued.map_err(|source| StatementError {
        action: "enqueue the computation of words for the search",
        source: sqlx::Error::Decode(source.into()),
    })
}
