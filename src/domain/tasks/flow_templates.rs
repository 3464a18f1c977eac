//! The flow templates that the agents of tasks may start.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::New;
use crate::domain::StatementError;

/// Stores the flow templates of tasks that were just added. Most tasks set none.
pub(super) async fn store_flow_templates(
    executor: impl PgExecutor<'_>,
    added: &[(&New<'_>, Uuid)],
) -> Result<(), StatementError> {
    let set = added.iter().filter_map(|(new, id)| Some((id, new.links.flow_templates?)));
    let set: serde_json::Map<String, serde_json::Value> =
        set.map(|(id, names)| (id.to_string(), names.into())).collect();
    if set.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "update dalsegno.tasks as t set flow_templates = array(select jsonb_array_elements_text(s.value))
           from jsonb_each($1) as s where t.id = s.key::uuid",
        serde_json::Value::Object(set),
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record the flow templates of tasks"))
}

/// Returns the flow templates that were set for a task, or for the task that it continues. `None`: no list was set.
pub async fn flow_templates(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<Vec<String>>, StatementError> {
    sqlx::query_scalar!(
        r#"with recursive work as (
             select t.continues_id, t.flow_templates from dalsegno.tasks as t where t.id = $1
             union all
             select t.continues_id, t.flow_templates
               from work as w join dalsegno.tasks as t on t.id = w.continues_id where w.flow_templates is null)
           select flow_templates as "names!" from work where flow_templates is not null limit 1"#,
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the flow templates of a task"))
}
