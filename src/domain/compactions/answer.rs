//! The answer to a compaction that a person has asked for.

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::{
    domain::{StatementError, feed, sessions, transaction},
    queue::{self, admin},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schema(as = CompactionResult)]
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

/// The answer to the request of job `job_id`. `before` is the generation that the session showed at the request. `None`: the job has not
/// ended.
pub async fn read_answer(
    pool: &PgPool,
    (session_id, job_id, before): (Uuid, i64, i32),
) -> Result<Option<Answer>, Error> {
    let gone = admin::list_ended_jobs(pool, &[job_id]).await;
    let gone = gone.map_err(|source| Error::Job { job_id, source })?;
    // Read after the job: it writes here before it ends.
    let session = sessions::get(pool, session_id).await?;
    let Some(gone) = gone.into_iter().next() else { return Ok(None) };
    if session.generation != before {
        return Ok(Some(Answer::Compacted { generation: session.generation }));
    }
    if let Some(because) = read_refusal_reason(pool, session_id, job_id).await? {
        return Ok(Some(Answer::Nothing { because }));
    }
    let error = if is_job_of_session(pool, session_id, job_id).await? { gone.error } else { None };
    let because = error.unwrap_or_else(|| "its job ended without an error".to_owned());
    Ok(Some(Answer::Failed { because }))
}

/// Checks that a job belongs to the session: errors of other jobs are hidden from its readers.
async fn is_job_of_session(pool: &PgPool, session_id: Uuid, job_id: i64) -> Result<bool, Error> {
    let mut conn = transaction::connection(pool).await?;
    match admin::find_job(&mut conn, job_id).await {
        Ok(job) => Ok(job.payload["session_id"] == session_id.to_string()),
        Err(queue::Error::NotFound { .. }) => Ok(false),
        Err(source) => Err(Error::Job { job_id, source }),
    }
}

/// Reads the worker's reason for not compacting, if it has given one.
async fn read_refusal_reason(
    pool: &PgPool,
    session_id: Uuid,
    job_id: i64,
) -> Result<Option<String>, StatementError> {
    let said = feed::list_compaction_refusals(pool, session_id).await?;
    let own = said.iter().find(|data| data["job_id"] == job_id);
    Ok(own.and_then(|data| data["because"].as_str()).map(str::to_owned))
}
