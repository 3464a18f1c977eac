//! The prompt of a step of a flow, with the fields of earlier results that it names.

use sqlx::PgConnection;

use crate::{
    domain::{
        StatementError,
        tasks::{self, StepField},
        turn_phases::TurnInput,
    },
    jobs::run_turn::error::Error,
};

/// Returns the prompt of the task. The inner error says which field has no value: the turn is not begun.
pub async fn prompt_of(
    conn: &mut PgConnection,
    input: &TurnInput,
) -> Result<Result<String, String>, Error> {
    let prompt = &input.task.prompt;
    let Some((flow_id, fields)) = &input.step_fields else { return Ok(Ok(prompt.clone())) };
    let fields: Vec<StepField> = serde_json::from_value(fields.clone()).map_err(|error| {
        let action = "read the fields of a prompt";
        StatementError { action, source: sqlx::Error::Decode(error.into()) }
    })?;
    let steps: Vec<String> = fields.iter().map(|field| field.step.clone()).collect();
    let results = tasks::step_results(conn, *flow_id, &steps).await?;
    Ok(tasks::fill_fields(prompt, &fields, &results))
}
