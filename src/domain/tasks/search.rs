//! Task search by several conditions, and the tags and metadata of tasks.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::{State, Task, TaskFilter, filter::select_tasks, list::of_ids};
use crate::domain::{
    Page, StatementError,
    labels::Labels,
    usage::{self, TurnPlace},
};

/// Tasks that one page of a search reads at most.
pub const MAX_READ: i64 = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedTask {
    #[serde(flatten)]
    pub task: Task,
    pub tags: Vec<String>,
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// True if the cost is 0 only because no price was set for the model of its last turn.
    #[serde(default)]
    pub is_unpriced: bool,
}

/// A page of tasks.
#[derive(Debug)]
pub struct TaskPage {
    pub tasks: Vec<ListedTask>,
    /// The last task that was read, if the search stopped at its maximum.
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

/// The ids of a page, and the last task that was read, if the search stopped at its maximum.
type PageIds = (Vec<Uuid>, Option<Uuid>);

/// Lists matching tasks, the newest first. `within` limits the search to these campaigns.
pub async fn search(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<TaskPage, StatementError> {
    let (ids, looked_up_to) = match filter.has_labels() {
        true => labelled(&mut *conn, filter, within, page).await?,
        false => newest(&mut *conn, filter, within, page).await?,
    };
    Ok(TaskPage { tasks: listed(conn, &ids).await?, looked_up_to })
}

/// As [`search`], without tags and metadata, and over any number of tasks. The filter has no text.
pub async fn list(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    page: Page,
) -> Result<Vec<Task>, StatementError> {
    let ids = match filter.has_labels() {
        true => labelled(&mut *conn, filter, None, page).await?.0,
        false => matches(&mut *conn, filter, None, page, None).await?,
    };
    of_ids(conn, &ids).await
}

/// Starts from the tasks with the labels of the filter. A search for a text reads a limited number of prompts.
async fn labelled(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<PageIds, StatementError> {
    let n_rows = if filter.text.is_some() { MAX_READ } else { page.limit };
    let rows = select_tasks!(
        filter,
        query_as<Hit>,
        fetch_all(conn),
        r#"t.id, ($11::text is null or strpos(lower(t.prompt), lower($11)) > 0) as "is_hit!""#,
        "and ($13::uuid[] is null or t.campaign_id = any($13))
         and t.id < coalesce($14, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) order by t.id desc limit $15",
        within,
        page.after,
        n_rows,
    )
    .map_err(StatementError::to("search for tasks by their labels"))?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|n| n >= n_rows);
    let last = rows.last().map(|row| row.id);
    let n_wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let hits = rows.iter().filter(|row| row.is_hit).take(n_wanted);
    let ids: Vec<Uuid> = hits.map(|row| row.id).collect();
    let looked_up_to = last.filter(|_| filter.text.is_some() && is_full && ids.len() < n_wanted);
    Ok((ids, looked_up_to))
}

/// Starts from the newest tasks, and reads a limited number of them.
async fn newest(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<PageIds, StatementError> {
    let has_checks = has_checks(filter);
    // A page of candidates is enough if all of them match. Postgres would sort many for a higher bound.
    let max_read = if has_checks { MAX_READ } else { page.limit };
    let ids = matches(&mut *conn, filter, within, page, Some(max_read)).await?;
    let is_full = i64::try_from(ids.len()).is_ok_and(|n| n >= page.limit);
    let looked_up_to = match is_full || !has_checks {
        true => None,
        false => last_candidate(&mut *conn, filter, within, page, max_read).await?,
    };
    Ok((ids, looked_up_to))
}

/// Returns true if the filter has conditions that are checked on each task.
fn has_checks(filter: &TaskFilter) -> bool {
    let TaskFilter { agent, instance, state, created_before, created_after, text, .. } = filter;
    let is_by_time = created_before.is_some() || created_after.is_some();
    let is_by_text = agent.is_some() || instance.is_some() || text.is_some();
    is_by_time || is_by_text || *state == Some(State::Done)
}

/// Selects the candidates of a filter, the newest first: the tasks of its campaign and times, in its state unless that is `done`. All of
/// these have an index. The other conditions are checked on each task that is read.
///
/// The plan depends on the values: see [`crate::domain::transaction::begin_search`]. The arguments of `$rest` begin at `$9`.
macro_rules! select_candidates {
    ($filter:expr, $within:expr, $page:expr, $max_read:expr, $select:literal, $rest:literal, $($argument:expr),* $(,)?) => {{
        let filter: &TaskFilter = $filter;
        sqlx::query_scalar!(
            $select + " from dalsegno.tasks as t
              where t.id between $3 and $4 and t.id < coalesce($6, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
                and ($1::uuid is null or t.campaign_id = $1) and ($5::uuid[] is null or t.campaign_id = any ($5))
                and ($8::uuid is null or t.campaign_id <> $8)
                and ($2::text is null or $2 = 'done' or t.state = $2)
                and ($2::text is null or $2 not in ('queued', 'running') or t.ended_at is null)
              order by t.id desc " + $rest,
            filter.campaign_id,
            filter.state as Option<State>,
            filter.least_id(),
            filter.most_id(),
            $within as Option<&[Uuid]>,
            $page.after,
            $max_read as Option<i64>,
            filter.except_campaign_id,
            $($argument,)*
        )
    }};
}

/// Returns the tasks of a page. Reads at most `max_read` candidates, and no more than the page needs.
async fn matches(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
    max_read: Option<i64>,
) -> Result<Vec<Uuid>, StatementError> {
    select_candidates!(
        filter,
        within,
        page,
        max_read,
        r#"select r.id as "id!" from (
             select t.id, ($2::text is null or t.state = $2) and ($9::text is null or t.agent = $9) and ($10::text is null or t.instance = $10)
                      and ($11::timestamptz is null or t.created_at < $11) and ($12::timestamptz is null or t.created_at >= $12)
                      and ($13::text is null or strpos(lower(t.prompt), lower($13)) > 0) as is_hit"#,
        "limit $7) as r where r.is_hit order by r.id desc limit $14",
        filter.agent,
        filter.instance,
        filter.created_before,
        filter.created_after,
        filter.text,
        page.limit,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("search for tasks"))
}

/// Returns the last of the candidates that a page reads, if it reads as many as it may.
async fn last_candidate(
    conn: &mut PgConnection,
    filter: &TaskFilter,
    within: Option<&[Uuid]>,
    page: Page,
    max_read: i64,
) -> Result<Option<Uuid>, StatementError> {
    select_candidates!(
        filter,
        within,
        page,
        Some(max_read),
        "select t.id",
        "offset $7 - 1 limit 1",
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("find the end of a search for tasks"))
}

/// Returns the tasks with these ids, the newest first.
pub async fn listed(
    conn: &mut PgConnection,
    ids: &[Uuid],
) -> Result<Vec<ListedTask>, StatementError> {
    let tasks = of_ids(&mut *conn, ids).await?;
    let mut labels = labels_of(&mut *conn, ids).await?;
    let free: Vec<TurnPlace> = tasks.iter().filter_map(free_turn).collect();
    let unpriced = usage::turns_without_price(conn, &free).await?;
    let listed = |task: Task| {
        let StoredLabels { tags, metadata } = labels.remove(&task.id).unwrap_or_default();
        let is_unpriced = free_turn(&task).is_some_and(|turn| unpriced.contains(&turn));
        ListedTask { task, tags, metadata, is_unpriced }
    };
    Ok(tasks.into_iter().map(listed).collect())
}

/// Returns the last turn of a task that has used tokens and cost nothing.
fn free_turn(task: &Task) -> Option<TurnPlace> {
    let (session_id, turn) = task.session_id.zip(task.turn)?;
    let is_free = task.spent_micros == 0 && task.spent_tokens > 0;
    is_free.then_some(TurnPlace { campaign_id: task.campaign_id, session_id, turn })
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
