//! Checks that a run still has its job.

use sqlx::PgExecutor;

use super::Error;

/// Checks and locks the job of a run, as the last statement before the commit of writes that are not the end of the
/// run. The job stays with the run until the transaction ends, because other transactions have to wait for the lock.
pub async fn check_and_lock_lease(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    lease: i64,
) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"SELECT true AS "holds!" FROM dalsegno.jobs WHERE id = $1 AND lease = $2 AND state = 'running' FOR SHARE"#,
        job_id,
        lease,
    )
    .fetch_optional(executor)
    .await
    .map(Option::unwrap_or_default)
    .map_err(Error::of("check whether a run still holds its job"))
}

/// Returns true if a run has its job at this moment. Takes no lock, so the run may lose it right after.
pub async fn is_run_by(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    lease: i64,
) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"SELECT exists (SELECT FROM dalsegno.jobs WHERE id = $1 AND lease = $2 AND state = 'running') AS "is_run!""#,
        job_id,
        lease,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("find the worker that runs a job"))
}
