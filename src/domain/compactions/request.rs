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

/// The job that folds older conversation of a session. The automatic one only prepares, and a turn applies it; the one that
/// a person asked for does both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactSession {
    pub session_id: Uuid,
    pub cause: Cause,
    /// What the session showed when it was asked for. Once it shows something else, there is nothing left to do.
    pub generation: i32,
}

impl Job for CompactSession {
    const KIND: &'static str = "compact_session";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            // The ladder inside has tried several ways already.
            max_attempts: 3,
            backoff: Backoff { first: Duration::from_secs(10), cap: Duration::from_secs(10 * 60) },
            deadline: Some(Duration::from_secs(30 * 60)),
            ..Policy::default()
        }
    }
}

/// Its compactions, one after the other. Not the conversation's lane: turns go on meanwhile.
pub fn lane(session_id: Uuid) -> String {
    format!("compact/{session_id}")
}

/// Puts a compaction of what the session shows on the queue. The same wish of the same turn is one job.
pub async fn request(
    conn: &mut PgConnection,
    session_id: Uuid,
    cause: Cause,
) -> Result<queue::Enqueued, Error> {
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
