//! Failed tasks in groups of equal failures, for the overview of an installation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::recent::{LINE_CHARS, READ_CHARS, TaskLine};
use crate::domain::{StatementError, amount::Refusal};

/// A period of failed tasks, and how many of them are read and listed.
#[derive(Debug, Clone, Copy)]
pub struct FailureQuery {
    pub since: DateTime<Utc>,
    /// Failed tasks that are read and grouped at most, the newest ones.
    pub max_read: i64,
    pub max_groups: i64,
    pub max_of_group: i32,
    /// Tasks that are listed at most: the newest of each group, then the second of each, and so on.
    pub max_listed: i64,
}

/// A failed task that stands for its group, alone or with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTask {
    pub line: TaskLine,
    /// Place of its group in the list, from 1.
    pub group_place: i64,
    /// Of the oldest one that is listed of its group: number of older ones in the group.
    pub unlisted: Option<i64>,
}

/// The failed tasks that were read for a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailureTotals {
    /// Number of failed tasks that were read, also of erased campaigns.
    pub read: i64,
    /// True if older ones of the period may not have been read: numbers of equal failures are lower bounds.
    pub is_cut: bool,
    /// Number of different failures among them. The list has the newest 20.
    pub groups: i64,
}

struct FailureRow {
    n_read: i64,
    n_groups: i64,
    group_place: Option<i64>,
    n_unlisted: Option<i64>,
    id: Option<Uuid>,
    job_id: Option<i64>,
    campaign_id: Option<Uuid>,
    agent: Option<String>,
    instance: Option<String>,
    prompt: Option<String>,
    error: Option<String>,
    budget_refusal: Option<Json<Refusal>>,
    flow_id: Option<Uuid>,
    step: Option<String>,
    session_id: Option<Uuid>,
    turn: Option<i32>,
    started_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
}

impl FailureRow {
    /// Returns its task. The row of an empty list has the totals alone.
    fn into_task(self) -> Option<FailedTask> {
        let line = TaskLine {
            id: self.id?,
            job_id: self.job_id?,
            campaign_id: self.campaign_id?,
            agent: self.agent?,
            instance: self.instance?,
            prompt: self.prompt?,
            error: self.error,
            budget_refusal: self.budget_refusal,
            flow_id: self.flow_id,
            step: self.step,
            session_id: self.session_id,
            turn: self.turn,
            started_at: self.started_at,
            ended_at: self.ended_at,
        };
        Some(FailedTask {
            line: line.cut(),
            group_place: self.group_place?,
            unlisted: self.n_unlisted.filter(|n| *n > 0),
        })
    }
}

/// Lists failed tasks, the newest first, so that each of the newest groups of equal failures is listed: tasks of one flow or of none that failed
/// with the same error or at the same budget. Leaves out tasks of erased campaigns, which cannot be retried, and steps that a retry of their flow
/// has replaced.
pub async fn list_failures(
    executor: impl PgExecutor<'_>,
    query: &FailureQuery,
) -> Result<(Vec<FailedTask>, FailureTotals), StatementError> {
    let rows = sqlx::query_file_as!(
        FailureRow,
        "src/domain/tasks/failures.sql",
        query.since,
        READ_CHARS,
        LINE_CHARS,
        query.max_read,
        query.max_groups,
        query.max_of_group,
        query.max_listed,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list groups of failed tasks"))?;
    let totals = rows.first().map(|row| FailureTotals {
        read: row.n_read,
        is_cut: row.n_read >= query.max_read,
        groups: row.n_groups,
    });
    let tasks = rows.into_iter().filter_map(FailureRow::into_task).collect();
    Ok((tasks, totals.unwrap_or_default()))
}

/// Lists the refusals of budgets among the newest failed tasks, of which it leaves out the same as [`list_failures`]. Returns true if older ones of
/// the period may not have been read.
pub async fn refusals_since(
    executor: impl PgExecutor<'_>,
    since: DateTime<Utc>,
    max_read: i64,
) -> Result<(Vec<Refusal>, bool), StatementError> {
    let rows = sqlx::query_file!("src/domain/tasks/refusals.sql", since, max_read)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("list the refusals of budgets"))?;
    let is_cut = rows.first().is_some_and(|row| row.n_read >= max_read);
    let refusals = rows.into_iter().filter_map(|row| Some(row.refusal?.0));
    Ok((refusals.collect(), is_cut))
}
