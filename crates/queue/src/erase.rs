//! Deletion of texts about jobs and lanes that callers and handlers wrote. Counters and the record of runs stay.

use sqlx::PgExecutor;

use super::Error;

/// The numbers of deleted rows and texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasedCounts {
    pub dead_jobs: i64,
    /// Error texts of runs.
    pub errors: i64,
}

/// Deletes the idempotency keys of these jobs, because callers choose them and may have put names in. Returns their
/// number.
pub async fn forget_keys(executor: impl PgExecutor<'_>, job_ids: &[i64]) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"WITH gone AS (DELETE FROM dalsegno.idempotency_keys WHERE job_id = ANY ($1) RETURNING 1)
           SELECT count(*) AS "n!" FROM gone"#,
        job_ids,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("remove idempotency keys"))
}

/// Removes the dead letters of these jobs, because their work is done or dropped in another way. Returns their number.
pub async fn forget_dead(executor: impl PgExecutor<'_>, job_ids: &[i64]) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"WITH dead AS (DELETE FROM dalsegno.dead_jobs WHERE id = ANY ($1) RETURNING queue, kind),
                counted AS (
                    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
                    SELECT d.queue, d.kind, 'delete', 'dead', 'deleted', count(*) FROM dead AS d GROUP BY d.queue, d.kind)
           SELECT count(*) AS "n!" FROM dead"#,
        job_ids,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("remove dead letters"))
}

/// Lists the jobs of these kinds that belong to a group or name it as their campaign. Reads all jobs.
pub async fn ids_of_group(
    executor: impl PgExecutor<'_>,
    kinds: &[&str],
    group_key: &str,
) -> Result<Vec<i64>, Error> {
    sqlx::query_scalar!(
        r#"SELECT j.id FROM dalsegno.jobs AS j JOIN dalsegno.job_payloads AS p ON p.job_id = j.id
            WHERE j.kind = ANY ($1) AND (j.group_key = $2 OR p.payload ->> 'campaign_id' = $2) ORDER BY j.id"#,
        kinds as &[&str],
        group_key,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the jobs of a group"))
}

/// Cancels jobs; skips those that are gone. A running job is asked to stop and stays until its worker has written its
/// end.
pub async fn cancel_all(
    executor: impl PgExecutor<'_>,
    ids: &[i64],
    reason: &str,
) -> Result<(), Error> {
    sqlx::query_scalar!(
        r#"SELECT dalsegno.cancel(j.id, $2) AS "found!" FROM (SELECT unnest($1::bigint[]) AS id ORDER BY 1) AS j"#,
        ids,
        reason,
    )
    .fetch_all(executor)
    .await
    .map(drop)
    .map_err(Error::of("cancel jobs"))
}

/// Returns true if a job of one of these kinds belongs to a group or names it as its campaign.
pub async fn has_group_jobs(
    executor: impl PgExecutor<'_>,
    kinds: &[&str],
    group_key: &str,
) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM dalsegno.jobs AS j JOIN dalsegno.job_payloads AS p ON p.job_id = j.id
                           WHERE j.kind = ANY ($1) AND (j.group_key = $2 OR p.payload ->> 'campaign_id' = $2)) AS "is_any!""#,
        kinds as &[&str],
        group_key,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("list the jobs of a group"))
}

/// Releases held lanes whose names begin with `start` or are among `names`, and so deletes the reasons of their holds.
/// A failed head that held its lane becomes a dead letter.
pub async fn release_held_lanes(
    executor: impl PgExecutor<'_>,
    start: Option<&str>,
    names: &[String],
) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"SELECT count(dalsegno.release_lane(l.key)) AS "n!"
             FROM (SELECT key::text FROM dalsegno.lanes
                    WHERE held_at IS NOT NULL AND (starts_with(key, $1) OR key = ANY ($2)) ORDER BY id) AS l"#,
        start,
        names,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("erase the hold reasons of lanes"))
}

/// Deletes a group's dead letters (also those that name it as their campaign), the errors of its runs and the reason of
/// its pause. Reads all of these tables, which hold some days.
pub async fn delete_group_traces(
    executor: impl PgExecutor<'_>,
    group_key: &str,
) -> Result<ErasedCounts, Error> {
    sqlx::query_as!(
        ErasedCounts,
        r#"WITH dead AS (DELETE FROM dalsegno.dead_jobs WHERE group_key = $1 OR payload ->> 'campaign_id' = $1 RETURNING queue, kind),
                counted AS (
                    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
                    SELECT d.queue, d.kind, 'delete', 'dead', 'deleted', count(*) FROM dead AS d GROUP BY d.queue, d.kind),
                pause AS (UPDATE dalsegno.pauses SET reason = '' WHERE scope = 'group' AND name = $1),
                words AS (UPDATE dalsegno.runs SET error = NULL WHERE group_key = $1 AND error IS NOT NULL RETURNING 1)
           SELECT (SELECT count(*) FROM dead) AS "dead_jobs!", (SELECT count(*) FROM words) AS "errors!""#,
        group_key,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("erase the texts of a group"))
}
