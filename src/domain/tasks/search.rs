//! Task search by several conditions, and the tags and metadata of tasks.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::{Task, TaskFilter, filter::select_tasks, list::of_ids};
use crate::domain::{Page, StatementError, labels::Labels};

/// Maximum number of prompts that one page of a text search reads.
pub const MAX_PROMPTS: i64 = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedTask {
    #[serde(flatten)]
    pub task: Task,
    pub tags: Vec<String>,
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// A page of tasks.
#[derive(Debug)]
pub struct TaskPage {
    pub tasks: Vec<ListedTask>,
    /// The last task that was read, if the search stopped at `MAX_PROMPTS`.
    pub looked_up_to: Option<Uuid>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct StoredLabels {
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct LabelRow<'a> {
    task_id: Uuid,
    tags: &'a [String],
    metadata: Option<&'a Map<String, Value>>,
}

struct Hit {
    id: Uuid,
    is_hit: bool,
}

/// Lists matching tasks, the newest first. `within` limits the search to these campaigns.
pub async fn search(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<TaskPage, StatementError> {
    let (ids, looked_up_to) = ids(&mut *conn, filter, within, page).await?;
    Ok(TaskPage { tasks: listed(conn, &ids).await?, looked_up_to })
}

/// As [`search`], without tags and metadata. The filter has no text.
pub async fn list(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    page: Page,
) -> Result<Vec<Task>, StatementError> {
    let (ids, _) = ids(&mut *conn, filter, None, page).await?;
    of_ids(conn, &ids).await
}

/// The ids of a page, and the last task that was looked at, if the search ended there for its bound.
async fn ids(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<(Vec<Uuid>, Option<Uuid>), StatementError> {
    let n_rows = if filter.text.is_some() { MAX_PROMPTS } else { page.limit };
    let rows = select_tasks!(
        filter,
        query_as<Hit>,
        fetch_all(conn),
        r#"t.id, ($11::text is null or strpos(lower(t.prompt), lower($11)) > 0) as "is_hit!""#,
        "and ($12::uuid[] is null or t.campaign_id = any($12))
         and t.id < coalesce($13, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) order by t.id desc limit $14",
        within,
        page.after,
        n_rows,
    )
    .map_err(StatementError::to("search for tasks"))?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|n| n >= n_rows);
    let last = rows.last().map(|row| row.id);
    let n_wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let hits = rows.iter().filter(|row| row.is_hit).take(n_wanted);
    let ids: Vec<Uuid> = hits.map(|row| row.id).collect();
    let looked_up_to = last.filter(|_| filter.text.is_some() && is_full && ids.len() < n_wanted);
    Ok((ids, looked_up_to))
}

/// Returns the tasks with these ids, the newest first.
pub async fn listed(
    conn: &mut PgConnection,
    ids: &[Uuid],
) -> Result<Vec<ListedTask>, StatementError> {
    let tasks = of_ids(&mut *conn, ids).await?;
    let mut labels = labels_of(conn, ids).await?;
    let listed = |task: Task| {
        let StoredLabels { tags, metadata } = labels.remove(&task.id).unwrap_or_default();
        ListedTask { task, tags, metadata }
    };
    Ok(tasks.into_iter().map(listed).collect())
}

/// Reads the tags and metadata of those of these tasks that have any.
pub(super) async fn labels_of(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, StoredLabels>, StatementError> {
    let rows = sqlx::query!(
        r#"select task_id, tags, metadata as "metadata: Json<Map<String, Value>>" from dalsegno.task_labels where task_id = any($1)"#,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the tags and metadata of tasks"))?;
    let stored = rows
        .into_iter()
        .map(|row| (row.task_id, StoredLabels { tags: row.tags, metadata: row.metadata.0 }));
    Ok(stored.collect())
}

impl<'a> LabelRow<'a> {
    /// Builds the row, or returns None for a task without labels.
    pub(super) fn of(task_id: Uuid, Labels { tags, metadata }: Labels<'a>) -> Option<Self> {
        let is_none = Labels { tags, metadata }.is_none();
        (!is_none).then_some(Self { task_id, tags, metadata })
    }
}

pub(super) async fn insert_labels(
    executor: impl PgExecutor<'_>,
    rows: &[LabelRow<'_>],
) -> Result<(), StatementError> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "insert into dalsegno.task_labels (task_id, tags, metadata)
         select t.task_id, t.tags, coalesce(t.metadata, '{}')
           from jsonb_to_recordset($1) as t (task_id uuid, tags text[], metadata jsonb)",
        Json(rows) as _,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the tags and metadata of tasks"))
}
