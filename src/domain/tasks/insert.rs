//! Inserting the rows of many new tasks.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::{
    New,
    add::{mode_of, priority_of},
};
use crate::domain::{StatementError, agents::SessionMode as Mode, json_rows};

/// A row of the statement's JSON parameter.
#[derive(Debug, Serialize)]
pub(super) struct InsertRow<'a> {
    id: Uuid,
    job_id: i64,
    budget_micros: Option<i64>,
    budget_tokens: Option<i64>,
    session_mode: Mode,
    agent: &'a str,
    instance: &'a str,
    prompt: &'a str,
    added_by: Option<&'a str>,
    parent_id: Option<Uuid>,
    continues_id: Option<Uuid>,
    flow_id: Option<Uuid>,
    step: Option<&'a str>,
    step_place: Option<i32>,
    traceparent: Option<&'a str>,
    result_schema: Option<&'a Value>,
    step_fields: Option<&'a Value>,
    priority: i32,
    #[serde(serialize_with = "json_rows::optional_timestamptz")]
    run_at: Option<DateTime<Utc>>,
    within_secs: Option<i32>,
}

impl<'a> InsertRow<'a> {
    pub(super) fn of(new: &'a New<'a>, id: Uuid, job_id: i64) -> Self {
        let flow = new.links.flow.as_ref();
        Self {
            id,
            job_id,
            budget_micros: new.budget.micros.or(new.agent.budget.micros),
            budget_tokens: new.budget.tokens.or(new.agent.budget.tokens),
            session_mode: mode_of(new),
            agent: &new.agent.name,
            instance: new.instance,
            prompt: new.prompt,
            added_by: new.added_by,
            parent_id: new.links.parent_id,
            continues_id: new.links.continues_id,
            flow_id: flow.map(|flow| flow.flow_id),
            step: flow.map(|flow| flow.step),
            step_place: flow.map(|flow| flow.place),
            traceparent: new.traceparent,
            result_schema: new.result_schema,
            step_fields: flow.and_then(|flow| flow.fields),
            priority: priority_of(new),
            run_at: new.run_at,
            within_secs: new.within_secs,
        }
    }
}

pub(super) async fn insert(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    tasks: &[InsertRow<'_>],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query_file!("src/domain/tasks/insert.sql", campaign_id, now, Json(tasks) as _)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("store tasks"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_task_rows() {
        let row = InsertRow {
            id: Uuid::nil(),
            job_id: 1,
            budget_micros: None,
            budget_tokens: None,
            session_mode: Mode::Continue,
            agent: "",
            instance: "",
            prompt: "",
            added_by: None,
            parent_id: None,
            continues_id: None,
            flow_id: None,
            step: None,
            step_place: None,
            traceparent: None,
            result_schema: None,
            step_fields: None,
            priority: 1,
            run_at: None,
            within_secs: None,
        };
        let sql = include_str!("insert.sql");
        columns::assert_are_fields_of(&row, sql, "jsonb_to_recordset($3)");
    }
}
