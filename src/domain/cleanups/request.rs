//! The job of a cleanup.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::{
    domain::schedules,
    queue::{self, EnqueueResult, Job, Options, Policy},
};

/// The lane of cleanups: one run at a time in the whole service. A second one waits, and then finds nothing to do.
pub const LANE: &str = "cleanup";
/// The job that removes everything that is due.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cleanup {}

impl Job for Cleanup {
    const KIND: &'static str = "cleanup";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

/// Enqueues a cleanup that runs now. `requester`: the label of the caller.
pub async fn request(
    executor: impl PgExecutor<'_>,
    requester: &str,
) -> Result<EnqueueResult, queue::Error> {
    let options = Options {
        lane: Some(LANE.to_owned()),
        headers: Some(schedules::headers_with_requester(requester)),
        ..Options::default()
    };
    queue::enqueue(executor, &Cleanup {}, &options).await
}
