//! Having vectors made of what has none.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{
    domain::Failed,
    queue::{self, Backoff, Job, Policy},
};

/// One run at a time, on the whole service: two would make the same vectors.
pub const LANE: &str = "embeddings";

/// Has vectors made of all that holds and has none of the configured model. Names nothing: what was written before vectors were made at
/// all is found in the same way.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MakeEmbeddings {}

impl Job for MakeEmbeddings {
    const KIND: &'static str = "make_embeddings";

    fn policy() -> Policy {
        Policy {
            queue: "upkeep",
            // A night of a server that is away; then somebody should hear of it.
            max_attempts: 50,
            backoff: Backoff { first: Duration::from_secs(10), cap: Duration::from_secs(10 * 60) },
            ..Policy::default()
        }
    }
}

/// Asks for it with the caller's commit, unless it is asked for already.
pub async fn request(conn: &mut PgConnection) -> Result<(), Failed> {
    let enqueued = queue::enqueue_unless_waiting(conn, &MakeEmbeddings {}, LANE).await;
    enqueued.map_err(|source| Failed {
        action: "ask for vectors to be made",
        source: sqlx::Error::Decode(source.into()),
    })
}
