//! Taking out what callers and handlers have said about jobs. Counters and the record of runs stay.

use sqlx::PgExecutor;

use super::Error;

/// How much was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    pub dead_jobs: i64,
    /// Words of runs that went wrong.
    pub errors: i64,
}

/// The idempotency keys of these jobs: callers choose them, and may have put names in.
pub async fn forget_keys(executor: impl PgExecutor<'_>, job_ids: &[i64]) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"WITH gone AS (DELETE FROM dalsegno.idempotency_keys WHERE job_id = ANY ($1) RETURNING 1)
           SELECT count(*) AS "n!" FROM gone"#,
        job_ids,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("forget idempotency keys"))
}

/// The dead letters of a group, those that name it as their campaign, and the errors of its runs. Looks at all of both tables: they hold some days.
pub async fn forget_group(
    executor: impl PgExecutor<'_>,
    group_key: &str,
) -> Result<Forgotten, Error> {
    sqlx::query_as!(
        Forgotten,
        r#"WITH dead AS (DELETE FROM dalsegno.dead_jobs WHERE group_key = $1 OR payload ->> 'campaign_id' = $1 RETURNING queue, kind),
                counted AS (
                    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
                    SELECT d.queue, d.kind, 'purge', 'dead', 'purged', count(*) FROM dead AS d GROUP BY d.queue, d.kind),
                words AS (UPDATE dalsegno.runs SET error = NULL WHERE group_key = $1 AND error IS NOT NULL RETURNING 1)
           SELECT (SELECT count(*) FROM dead) AS "dead_jobs!", (SELECT count(*) FROM words) AS "errors!""#,
        group_key,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("forget the words of a group"))
}
