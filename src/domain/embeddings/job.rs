//! The job that makes missing embeddings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{
    domain::StatementError,
    queue::{self, Backoff, Job, Policy},
};

/// The lane of the job: one run at a time in the whole service, because two would make the same vectors.
pub const LANE: &str = "embeddings";

/// Makes embeddings of all current texts that have none of the configured model. The job takes no ids: it scans for rows without a vector,
/// including those written before embeddings were configured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MakeEmbeddings {}

impl Job for MakeEmbeddings {
    const KIND: &'static str = "make_embeddings";

    fn policy() -> Policy {
        Policy {
            queue: "upkeep",
            // Enough for a server that is away for a night. Then the job becomes a dead letter, which people notice.
            max_attempts: 50,
            backoff: Backoff { first: Duration::from_secs(10), cap: Duration::from_secs(10 * 60) },
            ..Policy::default()
        }
    }
}

/// Enqueues the job with the caller's commit, unless one is waiting already.
pub async fn request(conn: &mut PgConnection) -> Result<(), StatementError> {
    let enqueued = queue::enqueue_unless_waiting(conn, &MakeEmbeddings {}, LANE).await;
    enqueued.map_err(|source| StatementError {
        action: "enqueue the computation of embeddings",
        source: sqlx::Error::Decode(source.into()),
    })
}
