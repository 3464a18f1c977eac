//! Bulk actions whose job has ended without them: it died, could not be read, or was cancelled while it did not run.
//!
//! Race: a run ends its action during this check. Actions are read before jobs, and a run ends both in one transaction. The update here
//! then finds that the action has ended, and changes nothing.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::{Error, State};
use crate::{
    domain::{StatementError, text},
    queue::admin,
};

/// Maximum number of actions that are checked at once. People start them, so there are few at a time.
const LIMIT: i64 = 1_000;

/// Ends such actions, and returns their number. An action that cannot be ended does not stop the others; its error is returned at the end.
pub async fn end_lost(pool: &PgPool, now: DateTime<Utc>) -> Result<u64, Error> {
    let job_ids = sqlx::query_scalar!(
        "select job_id from dalsegno.bulk_actions where ended_at is null order by job_id limit $1",
        LIMIT,
    )
    .fetch_all(pool)
    .await
    .map_err(StatementError::to("find bulk actions that have not ended"))?;
    let (mut n_ended, mut failed) = (0, None);
    for job in admin::list_ended_jobs(pool, &job_ids).await? {
        let unknown = || "its job ended without an error".to_owned();
        let (state, error) = match job.cancelled {
            true => (State::Cancelled, None),
            false => (State::Failed, Some(text::make_storable(job.error.unwrap_or_else(unknown)))),
        };
        let ended = sqlx::query!(
            "update dalsegno.bulk_actions set state = $2, error = $3, ended_at = $4 where job_id = $1 and ended_at is null",
            job.id,
            state as State,
            error,
            now,
        )
        .execute(pool)
        .await
        .map_err(StatementError::to("end a bulk action that has lost its job"));
        match ended {
            Ok(ended) => n_ended += ended.rows_affected(),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(n_ended),
    }
}
