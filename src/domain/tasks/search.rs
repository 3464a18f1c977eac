//! Task search by several conditions, and the tags and metadata of tasks.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::{Matching, State, Task, list::of_ids};
use crate::domain::{Failed, Page, ids, labels::Labels};

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
pub struct Found {
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
    filter: &Matching,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<Found, Failed> {
    let n_rows = if filter.text.is_some() { MAX_PROMPTS } else { page.limit };
    let rows = match filter.tags.is_empty() && filter.metadata.is_empty() {
        true => by_task(&mut *conn, filter, within, page.after, n_rows).await?,
        false => by_label(&mut *conn, filter, within, page.after, n_rows).await?,
    };
    let is_full = i64::try_from(rows.len()).is_ok_and(|n| n >= n_rows);
    let last = rows.last().map(|row| row.id);
    let n_wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let hits = rows.iter().filter(|row| row.is_hit).take(n_wanted);
    let ids: Vec<Uuid> = hits.map(|row| row.id).collect();
    let looked_up_to = last.filter(|_| filter.text.is_some() && is_full && ids.len() < n_wanted);
    Ok(Found { tasks: listed(conn, &ids).await?, looked_up_to })
}

/// Returns the tasks with these ids, the newest first.
pub async fn listed(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<ListedTask>, Failed> {
    let tasks = of_ids(&mut *conn, ids).await?;
    let mut labels = labels_of(conn, ids).await?;
    let listed = |task: Task| {
        let StoredLabels { tags, metadata } = labels.remove(&task.id).unwrap_or_default();
        ListedTask { task, tags, metadata }
    };
    Ok(tasks.into_iter().map(listed).collect())
}

async fn by_task(
    executor: impl PgExecutor<'_>,
    filter: &Matching,
    within: Option<&[Uuid]>,
    after: Option<Uuid>,
    n_rows: i64,
) -> Result<Vec<Hit>, Failed> {
    sqlx::query_as!(
        Hit,
        r#"select id, ($10::text is null or strpos(lower(prompt), lower($10)) > 0) as "is_hit!" from dalsegno.tasks
            where ($1::uuid is null or campaign_id = $1) and ($2::text is null or agent = $2)
              and ($3::text is null or instance = $3) and ($4::text is null or state = $4)
              and ($5::timestamptz is null or created_at < $5) and ($6::timestamptz is null or created_at >= $6)
              and ($7::uuid is null or id >= $7) and ($8::uuid[] is null or campaign_id = any($8))
              and id < coalesce($9, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by id desc limit $11"#,
        filter.campaign_id,
        filter.agent,
        filter.instance,
        filter.state as Option<State>,
        filter.created_before,
        filter.created_after,
        filter.created_after.map(ids::least_at),
        within,
        after,
        filter.text,
        n_rows,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("search for tasks"))
}

/// Searches over the index of tags and metadata, which few tasks may have.
async fn by_label(
    executor: impl PgExecutor<'_>,
    filter: &Matching,
    within: Option<&[Uuid]>,
    after: Option<Uuid>,
    n_rows: i64,
) -> Result<Vec<Hit>, Failed> {
    sqlx::query_as!(
        Hit,
        r#"select t.id, ($10::text is null or strpos(lower(t.prompt), lower($10)) > 0) as "is_hit!"
             from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id
            where l.tags @> $12 and l.metadata @> $13
              and ($1::uuid is null or t.campaign_id = $1) and ($2::text is null or t.agent = $2)
              and ($3::text is null or t.instance = $3) and ($4::text is null or t.state = $4)
              and ($5::timestamptz is null or t.created_at < $5) and ($6::timestamptz is null or t.created_at >= $6)
              and ($7::uuid is null or t.id >= $7) and ($8::uuid[] is null or t.campaign_id = any($8))
              and t.id < coalesce($9, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by t.id desc limit $11"#,
        filter.campaign_id,
        filter.agent,
        filter.instance,
        filter.state as Option<State>,
        filter.created_before,
        filter.created_after,
        filter.created_after.map(ids::least_at),
        within,
        after,
        filter.text,
        n_rows,
        &filter.tags,
        Json(&filter.metadata) as _,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("search for tasks by their labels"))
}

/// Reads the tags and metadata of those of these tasks that have any.
pub(super) async fn labels_of(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, StoredLabels>, Failed> {
    let rows = sqlx::query!(
        r#"select task_id, tags, metadata as "metadata: Json<Map<String, Value>>" from dalsegno.task_labels where task_id = any($1)"#,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("read the tags and metadata of tasks"))?;
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
) -> Result<(), Failed> {
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
    .map_err(Failed::to("store the tags and metadata of tasks"))
}
