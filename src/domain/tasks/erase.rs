//! Tasks without their words.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// What stands where a text was.
pub const ERASED: &str = "(erased)";

/// Tasks that lost their words, and the jobs that they ever had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    pub ids: Vec<Uuid>,
    pub job_ids: Vec<i64>,
}

/// Tasks of a campaign that have not ended, in the order of their ids, behind `after`.
pub async fn open_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>, Failed> {
    sqlx::query_scalar!(
        "select id from dalsegno.tasks
          where campaign_id = $1 and ended_at is null and id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
          order by id limit $3",
        campaign_id,
        after,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look for open tasks of a campaign"))
}

/// Takes prompt, result and error out of some ended tasks of a campaign.
pub async fn erase_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<Erased, Failed> {
    let rows = sqlx::query!(
        "update dalsegno.tasks
            set prompt = $3, traceparent = null, cancelled_because = null, result = case when result is not null then $3 end,
                error = case when error is not null then $3 end
          where id in (select id from dalsegno.tasks where campaign_id = $1 and ended_at is not null
                        and (prompt <> $3 or coalesce(result, $3) <> $3 or coalesce(error, $3) <> $3
                             or cancelled_because is not null) limit $2)
         returning id, job_id, first_job_id",
        campaign_id,
        limit,
        ERASED,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("erase the texts of tasks"))?;
    Ok(Erased {
        ids: rows.iter().map(|row| row.id).collect(),
        job_ids: rows
            .iter()
            .flat_map(|row| [Some(row.job_id), row.first_job_id])
            .flatten()
            .collect(),
    })
}
