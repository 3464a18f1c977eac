//! Tasks that wait for their provider.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, end::ended_error};
use crate::domain::StatementError;

/// Waits that are read at most.
const MAX_READ: i64 = 1_000;

/// The wait of a task whose call was refused, or whose server could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderWait {
    pub task_id: Uuid,
    pub job_id: i64,
    pub session_id: Uuid,
    pub since: DateTime<Utc>,
    /// The next call.
    pub until: DateTime<Utc>,
}

/// Lists the waits for providers, the longest first.
pub async fn provider_waits(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<ProviderWait>, StatementError> {
    sqlx::query_as!(
        ProviderWait,
        r#"select t.id as task_id, t.job_id, t.session_id as "session_id!", b.since, b.until
             from dalsegno.busy_tasks as b join dalsegno.tasks as t on t.id = b.task_id
            where t.state = 'queued' and t.session_id is not null and b.until > $1::timestamptz - interval '1 hour'
            order by b.since, t.id limit $2"#,
        now,
        MAX_READ,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the waits for providers"))
}

/// Records that a task waits for its provider until then, and returns the start of the wait. A wait that ended an hour ago is over, and a
/// new one begins. Returns an error if the task has ended.
pub async fn wait_for_provider(
    conn: &mut PgConnection,
    id: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Error> {
    let since = sqlx::query_scalar!(
        "insert into dalsegno.busy_tasks as b (task_id, since, until)
         select t.id, $3, $2 from dalsegno.tasks as t where t.id = $1 and t.state in ('queued', 'running')
         on conflict (task_id) do update
            set since = case when b.until > $3::timestamptz - interval '1 hour' then b.since else $3 end, until = $2
         returning b.since",
        id,
        until,
        now,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("let a task wait for its provider"))?;
    match since {
        Some(since) => Ok(since),
        None => Err(ended_error(conn, id).await),
    }
}

/// Ends a task's wait for its provider; a later wait begins anew.
pub async fn end_provider_wait(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.busy_tasks where task_id = $1", id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("record that a task no longer waits for its provider"))
}

/// Returns the start of a task's current wait for its provider.
pub async fn busy_since(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    sqlx::query_scalar!("select since from dalsegno.busy_tasks where task_id = $1", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("find the wait of a task for its provider"))
}

/// The tasks that wait for providers now, also those that are tried again at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyTasks {
    pub n_tasks: i64,
    /// The start of the longest wait.
    pub since: Option<DateTime<Utc>>,
}

/// Counts the tasks that wait for providers.
pub async fn count_busy(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<BusyTasks, StatementError> {
    sqlx::query_as!(
        BusyTasks,
        r#"select count(*) as "n_tasks!", min(b.since) as since from dalsegno.busy_tasks as b join dalsegno.tasks as t on t.id = b.task_id
            where t.ended_at is null and b.until > $1::timestamptz - interval '1 hour'"#,
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the tasks that wait for providers"))
}
