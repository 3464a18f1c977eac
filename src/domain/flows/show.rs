//! Looking flows up.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Flow, State};
use crate::domain::{
    Page, StatementError,
    ids::{self, PartialId},
    tasks,
};

/// A filter of flows. Unset fields match everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub campaign_id: Option<Uuid>,
    pub state: Option<State>,
    /// Only flows of these campaigns.
    pub within: Option<&'a [Uuid]>,
}

/// A flow with its tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowDetail)]
pub struct FlowDetail {
    #[serde(flatten)]
    pub flow: Flow,
    /// The latest task at each place, in order.
    pub steps: Vec<StepTask>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowStepTask)]
pub struct StepTask {
    pub step: String,
    pub task_id: Uuid,
    pub agent: String,
    pub instance: String,
    /// The node of the task. Null: the session stays at its node.
    #[serde(default)]
    pub node: Option<String>,
    pub state: tasks::State,
    /// The tasks that it waits for, or has waited for.
    pub after: Vec<Uuid>,
    #[serde(default)]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub ended_at: Option<DateTime<Utc>>,
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Flow, Error> {
    sqlx::query_as!(
        Flow,
        r#"select id as "id!", campaign_id as "campaign_id!", template as "template!", state as "state!: State", inputs as "inputs!",
                  tasks as "tasks!", done as "done!", failed as "failed!", cancelled as "cancelled!", open as "open!", added_by,
                  created_at as "created_at!", paused_at, ended_at
             from dalsegno.flow_states where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a flow"))?
    .ok_or(Error::Unknown(id))
}

pub async fn show(conn: &mut PgConnection, id: Uuid) -> Result<FlowDetail, Error> {
    let flow = get(&mut *conn, id).await?;
    let step = |task: tasks::FlowTask| StepTask {
        step: task.step,
        task_id: task.id,
        agent: task.agent,
        instance: task.instance,
        node: task.node,
        state: task.state,
        after: task.after,
        started_at: task.started_at,
        ended_at: task.ended_at,
    };
    let steps = tasks::of_flow(conn, id).await?.into_iter().map(step).collect();
    Ok(FlowDetail { flow, steps })
}

/// The newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    filter: Filter<'_>,
    page: Page,
) -> Result<Vec<Flow>, StatementError> {
    sqlx::query_as!(
        Flow,
        r#"select id as "id!", campaign_id as "campaign_id!", template as "template!", state as "state!: State", inputs as "inputs!",
                  tasks as "tasks!", done as "done!", failed as "failed!", cancelled as "cancelled!", open as "open!", added_by,
                  created_at as "created_at!", paused_at, ended_at
             from dalsegno.flow_states
            where ($1::uuid is null or campaign_id = $1) and ($2::text is null or state = $2)
              and id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
              and ($5::uuid[] is null or campaign_id = any($5))
            order by id desc limit $4"#,
        filter.campaign_id,
        filter.state as Option<State>,
        page.after,
        page.limit,
        filter.within,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the flows"))
}

/// Finds the flow that a person refers to.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("flow", "flow ls"),
        "dalsegno.flows",
        "campaign_id",
        "t.template || ', started by ' || coalesce(t.added_by, 'SQL')"
    )
}

pub async fn is_paused(executor: impl PgExecutor<'_>, id: Uuid) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.flows where id = $1 and paused_at is not null) as "is_paused!""#,
        id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check whether a flow is paused"))
}
