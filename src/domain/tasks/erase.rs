//! Erasing the texts of tasks.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::{StatementError, text};

/// Tasks whose texts were erased, with all jobs that they ever had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedTasks {
    pub ids: Vec<Uuid>,
    pub job_ids: Vec<i64>,
}

/// Lists open tasks of a campaign before `before`, the newest first. Waiting tasks then come before those that they wait for, and the end
/// of a lane before its head. A cancellation in this order starts few tasks.
pub async fn open_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.tasks
          where campaign_id = $1 and ended_at is null and id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
          order by id desc limit $3",
        campaign_id,
        before,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the open tasks of a campaign"))
}

/// Counts the open tasks of a campaign.
pub async fn count_open(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.tasks where campaign_id = $1 and ended_at is null"#,
        campaign_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the open tasks of a campaign"))
}

/// Erases prompt, result, result schema, error, tags, metadata and parameters of up to `limit` ended tasks of a campaign.
pub async fn erase_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<ErasedTasks, StatementError> {
    let rows = sqlx::query!(
        // Locked in the order in which `index_words.sql` locks tasks, so that both cannot deadlock.
        "with erased as (
         update dalsegno.tasks
            set prompt = $3, traceparent = null, node = null, cancelled_because = null, result = case when result is not null then $3 end,
                result_schema = null, result_json = null, result_fault = null, step_fields = null,
                error = case when error is not null then $3 end, budget_refusal = null
          where id in (select id from dalsegno.tasks where campaign_id = $1 and ended_at is not null
                        and (prompt <> $3 or coalesce(result, $3) <> $3 or coalesce(error, $3) <> $3
                             or cancelled_because is not null or budget_refusal is not null
                             or coalesce(result_schema::text, result_json::text, result_fault, step_fields::text) is not null
                             or exists (select from dalsegno.task_labels as l where l.task_id = tasks.id)
                             or exists (select from dalsegno.task_parameters as p where p.task_id = tasks.id))
                        order by id limit $2 for no key update)
         returning id, job_id, first_job_id),
         labels as (delete from dalsegno.task_labels where task_id in (select id from erased)),
         parameters as (delete from dalsegno.task_parameters where task_id in (select id from erased))
         select id, job_id, first_job_id from erased",
        campaign_id,
        limit,
        text::ERASED,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("erase the texts of tasks"))?;
    Ok(ErasedTasks {
        ids: rows.iter().map(|row| row.id).collect(),
        job_ids: rows
            .iter()
            .flat_map(|row| [Some(row.job_id), row.first_job_id])
            .flatten()
            .collect(),
    })
}
