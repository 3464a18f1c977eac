//! One action on all tasks that match a filter. A worker carries it out: it cancels together what nothing hangs on, and goes on task
//! by task.
//!
//! A task and the progress are one transaction, so whoever goes on after a lost worker does nothing twice and counts each task
//! once. Race: a run that was declared lost may still be at work. A step that finds the cursor moved on is rolled back.

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
    carry_out::{Step, advance, cancel, cancel_batch, finish, start, step, tasks_left},
    error::Error,
    lost::end_lost,
    preview::{Preview, preview},
    request::{CarryOut, New, request},
};
use super::{
    Failed, Page,
    ids::{self, Given, NotFound},
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
    /// Tasks that matched when it was asked.
    pub matched: i64,
    /// Tasks with which it was done.
    pub done: i64,
    /// Tasks that had changed meanwhile.
    pub skipped: i64,
    /// Why it has failed, if it has.
    pub error: Option<String>,
    /// What carries it out: `/v1/jobs/{id}` says why it waits, or what went wrong.
    pub job_id: i64,
    /// The task that was looked at last.
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
    /// Its job was cancelled on the way; what was done stays.
    Cancelled,
    /// Its job has died; what was done stays. It goes on where the job is tried again.
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

    /// The states of a task in which it can be done.
    fn states(self) -> &'static [tasks::State] {
        match self {
            Self::Cancel => &[tasks::State::Queued, tasks::State::Running],
            Self::Retry => &[tasks::State::Failed, tasks::State::Cancelled],
        }
    }
}

/// The action that a person means.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &Given,
    within: Option<&[Uuid]>,
) -> Result<Uuid, NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("bulk action", "bulk ls"),
        "dalsegno.bulk_actions",
        "null::uuid",
        "t.action || ', ' || t.state"
    )
}

/// The newest first.
pub async fn list(executor: impl PgExecutor<'_>, page: Page) -> Result<Vec<BulkAction>, Failed> {
    sqlx::query_as!(
        BulkAction,
        r#"select id, action as "action: Action", filter as "filter: Json<TaskFilter>", reason, state as "state: State", matched, done,
                  skipped, error, job_id, cursor, created_at, started_at, ended_at
             from dalsegno.bulk_actions where id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by id desc limit $2"#,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("list the bulk actions"))
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
    .map_err(Failed::to("read a bulk action"))?
    .ok_or(Error::Unknown(id))
}

/// Takes the reasons and the words of the filters out of those that were about one campaign, and names them.
pub async fn erase_words(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<Uuid>, Failed> {
    sqlx::query_scalar!(
        "update dalsegno.bulk_actions
            set reason = '(erased)', error = case when error is not null then '(erased)' end, filter = filter - '{text,tags,metadata}'::text[]
          where filter ->> 'campaign_id' = $1 returning id",
        campaign_id.to_string(),
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("erase the reasons of bulk actions"))
}
