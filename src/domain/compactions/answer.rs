//! The answer to a compaction that a person has asked for.

use std::time::Duration;

use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::{
    domain::{Failed, feed, sessions},
    queue::admin,
};

const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Answer {
    /// The session shows this compaction.
    Compacted {
        generation: i32,
    },
    Nothing {
        because: String,
    },
    /// The job is a dead letter.
    Failed {
        because: String,
    },
}

/// Waits until the job of a request has ended. `before` is the generation that the session showed when it was asked. `None`: it has
/// not ended within `patience`.
pub async fn wait_for_answer(
    pool: &PgPool,
    (session_id, job_id, before): (Uuid, i64, i32),
    patience: Duration,
) -> Result<Option<Answer>, Error> {
    let wait = async {
        loop {
            if let Some(answer) = answer(pool, (session_id, job_id, before)).await? {
                return Ok(answer);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(patience, wait).await.ok().transpose()
}

async fn answer(
    pool: &PgPool,
    (session_id, job_id, before): (Uuid, i64, i32),
) -> Result<Option<Answer>, Error> {
    let gone = admin::gone_jobs(pool, &[job_id]).await;
    let gone = gone.map_err(|source| Error::Job { job_id, source })?;
    let Some(gone) = gone.into_iter().next() else { return Ok(None) };
    let session = sessions::get(pool, session_id).await?;
    if session.generation != before {
        return Ok(Some(Answer::Compacted { generation: session.generation }));
    }
    let said = said(pool, (session.campaign_id, session_id), job_id).await?;
    let unknown = || "its job ended without a reason".to_owned();
    Ok(Some(match said {
        Some(because) => Answer::Nothing { because },
        None => Answer::Failed { because: gone.error.unwrap_or_else(unknown) },
    }))
}

/// Why the worker has found nothing to do, if it has.
async fn said(pool: &PgPool, of: (Uuid, Uuid), job_id: i64) -> Result<Option<String>, Failed> {
    let events = feed::latest_of_session(pool, of, feed::Kind::CompactionNotNeeded).await?;
    let own = events.iter().find(|event| event.data["job_id"] == job_id);
    Ok(own.and_then(|event| event.data["because"].as_str()).map(str::to_owned))
}
