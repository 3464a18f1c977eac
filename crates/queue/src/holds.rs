//! Whether a run still has its job.

use sqlx::PgExecutor;

use super::Error;

/// For writes that belong to a run and are not its end: the last statement before their commit. The job stays with the run until
/// the transaction ends, because whoever takes it away has to wait.
pub async fn holds(executor: impl PgExecutor<'_>, job_id: i64, lease: i64) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"SELECT true AS "holds!" FROM dalsegno.jobs WHERE id = $1 AND lease = $2 AND state = 'running' FOR SHARE"#,
        job_id,
        lease,
    )
    .fetch_optional(executor)
    .await
    .map(Option::unwrap_or_default)
    .map_err(Error::of("see whether a run still has its job"))
}

/// Whether a run has its job at this moment. Nothing keeps it from losing it in the next.
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
    .map_err(Error::of("see who runs a job"))
}
