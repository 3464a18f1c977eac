//! Asking for a compaction: the job that makes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Cause, Error};
use crate::{
    domain::sessions,
    queue::{self, Backoff, Job, Policy},
};

/// The job that compacts older messages of a session. An automatic one only prepares the compaction, and a turn applies it. One that a
/// person asked for does both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactSession {
    pub session_id: Uuid,
    pub cause: Cause,
    /// The generation that the session showed at the request. Once the session shows another one, the job has nothing to do.
    pub generation: i32,
}

impl Job for CompactSession {
    const KIND: &'static str = "compact_session";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            // Each attempt already tries several ways to make a summary.
            max_attempts: 3,
            backoff: Backoff { first: Duration::from_secs(10), cap: Duration::from_secs(10 * 60) },
            deadline: Some(Duration::from_secs(30 * 60)),
            ..Policy::default()
        }
    }
}

/// The lane of a session's compactions, which run one after the other. Turns go on meanwhile, because their lane is another one.
pub fn lane(session_id: Uuid) -> String {
    format!("compact/{session_id}")
}

/// Enqueues a compaction of the view that the session shows. Automatic requests after the same turn become one job.
pub async fn request(
    conn: &mut PgConnection,
    session_id: Uuid,
    cause: Cause,
) -> Result<queue::EnqueueResult, Error> {
    let session = sessions::get(&mut *conn, session_id).await?;
    if session.closed_at.is_some() {
        return Err(sessions::Error::Closed(session_id).into());
    }
    let generation = session.generation;
    let job = CompactSession { session_id, cause, generation };
    let options = queue::Options {
        lane: Some(lane(session_id)),
        group_key: Some(session.campaign_id.to_string()),
        idempotency_key: (cause == Cause::Auto)
            .then(|| format!("compact:{session_id}/{generation}/{}", session.turns)),
        ..queue::Options::default()
    };
    let enqueued = queue::enqueue(&mut *conn, &job, &options).await;
    enqueued.map_err(|source| Error::Enqueue { session_id, source })
}
