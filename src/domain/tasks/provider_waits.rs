//! Tasks that wait for their provider.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

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
