//! The job of a cleanup.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::queue::{self, EnqueueResult, Job, Options, Policy};

/// The lane of cleanups: one run at a time in the whole service. A second one waits, and then finds nothing to do.
pub const LANE: &str = "purge";
/// The job that removes everything that is due.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Purge {}

impl Job for Purge {
    const KIND: &'static str = "purge";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

/// Enqueues a cleanup that runs now.
pub async fn request(executor: impl PgExecutor<'_>) -> Result<EnqueueResult, queue::Error> {
    let options = Options { lane: Some(LANE.to_owned()), ..Options::default() };
    queue::enqueue(executor, &Purge {}, &options).await
}
