//! Parameters of tasks.

use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::New;
use crate::domain::{StatementError, parameters::Parameters};

/// Stores the parameters of tasks that were just added. Most tasks have none.
pub(super) async fn store_parameters(
    executor: impl PgExecutor<'_>,
    added: &[(&New<'_>, Uuid)],
) -> Result<(), StatementError> {
    let with = added.iter().filter(|(new, _)| new.has_parameters());
    let with = with.filter_map(|(new, id)| Some((*id, Json(new.parameters?))));
    let (ids, values): (Vec<Uuid>, Vec<Json<&Parameters>>) = with.unzip();
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "insert into dalsegno.task_parameters (task_id, parameters)
         select p.task_id, p.parameters from unnest($1::uuid[], $2::jsonb[]) as p (task_id, parameters)",
        &ids,
        &values as _,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the parameters of tasks"))
}

/// Reads the parameters of a task.
pub(super) async fn parameters_of(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Parameters, StatementError> {
    let found = sqlx::query_scalar!(
        r#"select parameters as "parameters: Json<Parameters>" from dalsegno.task_parameters where task_id = $1"#,
        id,
    );
    let found = found.fetch_optional(executor).await;
    let found = found.map_err(StatementError::to("read the parameters of a task"))?;
    Ok(found.map(|it| it.0).unwrap_or_default())
}
