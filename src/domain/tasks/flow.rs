//! The tasks of a flow.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{OnFailure, State};
use crate::domain::{StatementError, agents::SessionMode as Mode, text::quote_for_shell};

/// The latest task of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTask {
    pub id: Uuid,
    pub step: String,
    pub place: i32,
    pub agent: String,
    pub instance: String,
    pub state: State,
    pub prompt: String,
    pub session_mode: Mode,
    pub node: Option<String>,
    pub on_failure: OnFailure,
    pub result_schema: Option<Value>,
    /// The places of the prompt that stand for fields of results.
    pub step_fields: Option<Value>,
    /// Seconds that its answer may take.
    pub within_secs: Option<i32>,
    /// The tasks that it waits for or has waited for, in order.
    pub after: Vec<Uuid>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// Lists the tasks of a flow, in the order of their places.
pub async fn of_flow(
    executor: impl PgExecutor<'_>,
    flow_id: Uuid,
) -> Result<Vec<FlowTask>, StatementError> {
    sqlx::query_as!(
        FlowTask,
        r#"select s.task_id as "id!", s.step as "step!", s.place as "place!", s.agent as "agent!", s.instance as "instance!",
                  s.state as "state!: State", t.prompt, t.session_mode as "session_mode: Mode", t.node, t.result_schema, t.step_fields, t.within_secs, t.started_at, t.ended_at,
                  coalesce(w.on_failure, 'run') as "on_failure!: OnFailure",
                  array(select d.on_task_id from dalsegno.task_dependencies as d where d.task_id = s.task_id order by d.place) as "after!"
             from dalsegno.flow_steps as s
             join dalsegno.tasks as t on t.id = s.task_id
             left join dalsegno.task_waits as w on w.task_id = s.task_id
            where s.flow_id = $1 order by s.place"#,
        flow_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the tasks of a flow"))
}

/// Locks the tasks of a flow until the transaction ends. Must come before the locks on their waits, the order at every end of a task.
pub async fn hold_of_flow(
    executor: impl PgExecutor<'_>,
    flow_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("select id from dalsegno.tasks where flow_id = $1 order by id for share", flow_id)
        .fetch_all(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("hold the tasks of a flow"))
}

/// Returns the command that runs a failed or cancelled task again: for the step of a flow that of the flow, because a retry of the task alone
/// leaves the steps after it cancelled.
pub fn retry_command(id: Uuid, flow_step: Option<(Uuid, &str)>) -> String {
    match flow_step {
        Some((flow, step)) => {
            format!("dalsegno flow retry {flow} --from {}", quote_for_shell(step))
        }
        None => format!("dalsegno task retry {id}"),
    }
}
