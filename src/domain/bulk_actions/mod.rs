//! Bulk actions: one action on all tasks that match a filter. A worker carries it out. It cancels tasks together if no other task depends
//! on them, and handles the rest one by one.
//!
//! A task's change and the progress commit in one transaction. After a lost worker, the next run therefore repeats nothing and counts each
//! task once. Race: a run that was declared lost may still be at work. Its step finds that the cursor has moved, and is rolled back.

mod carry_out;
mod error;
mod lost;
mod preview;
mod request;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    carry_out::{Step, advance, cancel, cancel_many, finish, list_remaining_tasks, start, step},
    error::Error,
    lost::end_lost,
    preview::{Preview, preview},
    request::{CarryOut, LIMITS, New, request},
};
use super::{
    Page, StatementError,
    ids::{self, NotFound, PartialId},
    tasks::{self, TaskFilter},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BulkAction {
    pub id: Uuid,
    pub action: Action,
    #[schema(value_type = TaskFilter)]
    pub filter: Json<TaskFilter>,
    pub reason: String,
    pub state: State,
    /// Tasks that matched at the request.
    pub matched: i64,
    /// Tasks to which the action was applied.
    pub done: i64,
    /// Skipped tasks: they had changed meanwhile.
    pub skipped: i64,
    /// The error, if the action has failed.
    pub error: Option<String>,
    /// The job that carries the action out: `/v1/jobs/{id}` explains why it waits or failed.
    pub job_id: i64,
    /// The last task that was handled.
    #[serde(skip)]
    pub cursor: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = TaskAction)]
pub enum Action {
    Cancel,
    Retry,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = BulkActionState)]
pub enum State {
    Queued,
    Running,
    Done,
    /// Its job was cancelled on the way. Tasks that it has changed stay as they are.
    Cancelled,
    /// Its job is a dead letter. Tasks that it has changed stay as they are. Retrying the job continues the action.
    Failed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
        }
    }

    /// Returns the states of tasks to which the action applies.
    fn states(self) -> &'static [tasks::State] {
        match self {
            Self::Cancel => &[tasks::State::Queued, tasks::State::Running],
            Self::Retry => &[tasks::State::Failed, tasks::State::Cancelled],
        }
    }
}

/// Finds the action that a person refers to.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("bulk action", "bulk ls"),
        "dalsegno.bulk_actions",
        "(filter ->> 'campaign_id')::uuid",
        "t.action || ', ' || t.state"
    )
}

/// The newest first. `within`: only those whose filters name one of these campaigns.
pub async fn list(
    executor: impl PgExecutor<'_>,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<Vec<BulkAction>, StatementError> {
    sqlx::query_as!(
        BulkAction,
        r#"select id, action as "action: Action", filter as "filter: Json<TaskFilter>", reason, state as "state: State", matched, done,
                  skipped, error, job_id, cursor, created_at, started_at, ended_at
             from dalsegno.bulk_actions where id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
              and ($3::uuid[] is null or (filter ->> 'campaign_id')::uuid = any ($3))
            order by id desc limit $2"#,
        page.after,
        page.limit,
        within,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the bulk actions"))
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<BulkAction, Error> {
    sqlx::query_as!(
        BulkAction,
        r#"select id, action as "action: Action", filter as "filter: Json<TaskFilter>", reason, state as "state: State", matched, done,
                  skipped, error, job_id, cursor, created_at, started_at, ended_at
             from dalsegno.bulk_actions where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a bulk action"))?
    .ok_or(Error::Unknown(id))
}

/// Erases reasons, errors and search words of the actions whose filter names this campaign, and returns their ids.
pub async fn erase_texts(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "update dalsegno.bulk_actions
            set reason = '(erased)', error = case when error is not null then '(erased)' end, filter = filter - '{text,tags,metadata}'::text[]
          where filter ->> 'campaign_id' = $1 returning id",
        campaign_id.to_string(),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("erase the reasons of bulk actions"))
}
