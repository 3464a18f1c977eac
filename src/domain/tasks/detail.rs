//! A task with its attempts.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{
    Error, State, Task, TaskWaits, WaitedFor, get, parameters::parameters_of, search::labels_of,
    waits_of,
};
use crate::domain::{
    StatementError,
    amount::Refusal,
    batches::{self, BatchWait},
    feed, sessions,
    task_files::{self, TaskFile},
    turns::{self, Turn},
    usage::{self, UnpricedCalls},
};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskDetail)]
pub struct Detail {
    #[serde(flatten)]
    pub task: Task,
    /// 0 is the most urgent; 100 is the default.
    #[serde(default)]
    pub priority: i16,
    /// The earliest start. Null: at once.
    #[serde(default)]
    pub run_at: Option<DateTime<Utc>>,
    /// The node that the task belongs to. Null: the session stays at its node.
    pub node: Option<String>,
    /// The flow templates that the agent may start in the task. Null: those of the agent's file.
    #[serde(default)]
    pub flow_templates: Option<Vec<String>>,
    /// The author, as in the audit log. Null if the task was added neither through the API nor the command line.
    pub added_by: Option<String>,
    /// The parent: the task that added this one as a child.
    pub parent_id: Option<Uuid>,
    /// The task that this one continues.
    pub continues_id: Option<Uuid>,
    /// The flow that it is a part of.
    #[serde(default)]
    pub flow_id: Option<Uuid>,
    /// Its step in the flow.
    #[serde(default)]
    pub step: Option<String>,
    /// The tasks that it waits for or has waited for.
    pub waiting: Option<TaskWaits>,
    /// The reason of the cancellation, from the caller or from the task that it waited for.
    pub cancelled_because: Option<String>,
    pub tags: Vec<String>,
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Named values that its calls contain.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// The JSON Schema that the answer has to match. Null: that of the agent's file, if it has one.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result_schema: Option<Value>,
    /// The fault of the last answer, while the task waits for a corrected one.
    #[serde(default)]
    pub result_fault: Option<String>,
    /// Seconds that the answer may take. Null: no time was given.
    #[serde(default)]
    pub within_secs: Option<i32>,
    /// The message batch that the task waits for.
    #[serde(default)]
    pub batch: Option<BatchWait>,
    /// The output files: those that its agent has written, and those that could not be stored.
    #[serde(default)]
    pub files: Vec<TaskFile>,
    /// The attempts that reached a session, in order.
    pub turns: Vec<Turn>,
    /// The version of the agent's prompt that its last attempt used: the hash with which the session was made. Null: no attempt has reached a
    /// session, the session was removed, or an older version has answered.
    #[serde(default)]
    pub prompt_hash: Option<String>,
    /// The calls of its attempts for whose model no price was set: their cost counts as 0.
    #[serde(default)]
    pub unpriced_calls: Vec<UnpricedCalls>,
    /// The tasks that it has added as children, in order, at most 200.
    #[serde(default)]
    pub children: Vec<WaitedFor>,
}

/// Most children in the details of a task.
const MAX_CHILDREN: i64 = 200;

pub async fn detail(conn: &mut PgConnection, id: Uuid) -> Result<Detail, Error> {
    let task = get(&mut *conn, id).await?;
    let beside = load_relations(&mut *conn, id).await?;
    let mut waits = waits_of(&mut *conn, &[id]).await?;
    let labels = labels_of(&mut *conn, &[id]).await?.remove(&id).unwrap_or_default();
    let is_cancelled = task.state == State::Cancelled;
    let turns = turns::of_task(&mut *conn, id).await?;
    let called: Vec<_> = turns.iter().filter(|turn| turn.calls > 0).map(Turn::place).collect();
    let prompt_hash = match turns.last() {
        Some(turn) => sessions::prompt_hash(&mut *conn, turn.session_id).await?,
        None => None,
    };
    Ok(Detail {
        prompt_hash,
        unpriced_calls: usage::unpriced_calls(&mut *conn, task.campaign_id, &called).await?,
        task,
        priority: beside.priority,
        run_at: beside.run_at,
        node: beside.node,
        flow_templates: beside.flow_templates,
        added_by: beside.added_by,
        parent_id: beside.parent_id,
        continues_id: beside.continues_id,
        flow_id: beside.flow_id,
        step: beside.step,
        waiting: waits.remove(&id),
        cancelled_because: beside.cancelled_because.filter(|_| is_cancelled),
        tags: labels.tags,
        metadata: labels.metadata,
        children: children(&mut *conn, id).await?,
        parameters: parameters_of(&mut *conn, id).await?,
        result_schema: beside.result_schema,
        result_fault: beside.result_fault,
        within_secs: beside.within_secs,
        batch: batches::wait_of(&mut *conn, id).await?,
        files: task_files::list(conn, id).await?,
        turns,
    })
}

async fn children(conn: &mut PgConnection, id: Uuid) -> Result<Vec<WaitedFor>, StatementError> {
    sqlx::query_as!(
        WaitedFor,
        r#"select id as task_id, agent, instance, state as "state: State" from dalsegno.tasks
            where parent_id = $1 order by id limit $2"#,
        id,
        MAX_CHILDREN,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("list the children of a task"))
}

/// Columns of a task that few readers need.
pub(super) struct DetailColumns {
    priority: i16,
    run_at: Option<DateTime<Utc>>,
    node: Option<String>,
    flow_templates: Option<Vec<String>>,
    added_by: Option<String>,
    parent_id: Option<Uuid>,
    continues_id: Option<Uuid>,
    cancelled_because: Option<String>,
    flow_id: Option<Uuid>,
    step: Option<String>,
    result_schema: Option<Value>,
    result_fault: Option<String>,
    within_secs: Option<i32>,
    budget_refusal: Option<Json<Refusal>>,
}

async fn load_relations(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<DetailColumns, StatementError> {
    sqlx::query_as!(
        DetailColumns,
        r#"select priority, run_at, node, flow_templates, added_by, parent_id, continues_id, cancelled_because, flow_id, step, result_schema, result_fault, within_secs,
                  budget_refusal as "budget_refusal: Json<Refusal>"
             from dalsegno.tasks where id = $1"#,
        id,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("read the details of a task"))
}

/// The columns of a task that its explanation names.
pub(in crate::domain) struct ExplainedColumns {
    pub cancelled_because: Option<String>,
    /// Its flow, and its step there.
    pub flow: Option<(Uuid, String)>,
    /// Its earliest start.
    pub run_at: Option<DateTime<Utc>>,
    /// The refusal of the budget at which it failed.
    pub refusal: Option<Refusal>,
}

pub(in crate::domain) async fn explained_columns(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<ExplainedColumns, StatementError> {
    let DetailColumns { cancelled_because, flow_id, step, run_at, budget_refusal, .. } =
        load_relations(conn, id).await?;
    let refusal = budget_refusal.map(|Json(refusal)| refusal);
    Ok(ExplainedColumns { cancelled_because, flow: flow_id.zip(step), run_at, refusal })
}

/// Returns true for a step of a flow. False for a task that is unknown.
pub async fn is_flow_step(conn: &mut PgConnection, id: Uuid) -> Result<bool, StatementError> {
    let found = sqlx::query_scalar!("select flow_id from dalsegno.tasks where id = $1", id);
    let found = found.fetch_optional(conn).await;
    let found = found.map_err(StatementError::to("read the flow of a task"))?;
    Ok(found.flatten().is_some())
}

impl Task {
    pub fn event(&self, kind: feed::Kind, data: Value) -> feed::New {
        feed::New {
            campaign_id: Some(self.campaign_id),
            task_id: Some(self.id),
            session_id: self.session_id,
            kind,
            data,
        }
    }
}
