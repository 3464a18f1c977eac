//! The job of a cleanup.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::queue::{self, Enqueued, Job, Options, Policy};

/// One run at a time, on the whole service: a second one waits, and then finds nothing to do.
pub const LANE: &str = "purge";
/// Asks for everything to be removed whose time is over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Purge {}

impl Job for Purge {
    const KIND: &'static str = "purge";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

/// Has a worker do it now.
pub async fn request(executor: impl PgExecutor<'_>) -> Result<Enqueued, queue::Error> {
    let options = Options { lane: Some(LANE.to_owned()), ..Options::default() };
    queue::enqueue(executor, &Purge {}, &options).await
}
