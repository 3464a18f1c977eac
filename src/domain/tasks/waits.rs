//! Waits of tasks for other tasks, and the check for lost signals.
//!
//! The database ends a wait when the last of the awaited tasks ends: see the migration that creates `dalsegno.task_waits`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{OnFailure, State};
use crate::domain::StatementError;

/// A task that another one waits for or has waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    pub id: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: State,
    /// Its result, error, or reason of cancellation, cut to the requested number of characters.
    pub text: Option<String>,
    /// Number of characters that were cut.
    pub left_out_chars: i32,
}

/// The tasks that a task waits for or has waited for, without their results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskWaiting)]
pub struct TaskWaits {
    /// In the order in which the task gets their results.
    pub depends_on: Vec<WaitedFor>,
    pub on_failure: OnFailure,
    /// True while the task waits.
    pub waits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitedFor {
    pub task_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: State,
}

/// A wait to be written.
pub(super) struct NewWait {
    pub(super) task_id: Uuid,
    pub(super) depends_on: Vec<Uuid>,
    pub(super) on_failure: OnFailure,
    pub(super) not_before: Option<chrono::DateTime<chrono::Utc>>,
}

#[derive(Serialize)]
struct Row<'a> {
    task_id: Uuid,
    depends_on: &'a [Uuid],
    on_failure: OnFailure,
    not_before: Option<chrono::DateTime<chrono::Utc>>,
}

/// Begins the waits of tasks that were just written and whose jobs wait for a signal. At the commit, tasks whose predecessors have all
/// ended are released.
pub(super) async fn begin(
    conn: &mut PgConnection,
    waits: &[NewWait],
) -> Result<(), StatementError> {
    if waits.is_empty() {
        return Ok(());
    }
    let row = |wait: &NewWait| {
        serde_json::json!(Row {
            task_id: wait.task_id,
            depends_on: &wait.depends_on,
            on_failure: wait.on_failure,
            not_before: wait.not_before,
        })
    };
    sqlx::query!(
        "select count(dalsegno.wait_for_tasks(w.task_id, w.depends_on, w.on_failure, w.not_before))
           from jsonb_to_recordset($1) as w (task_id uuid, depends_on uuid[], on_failure text, not_before timestamptz)",
        waits.iter().map(row).collect::<serde_json::Value>(),
    )
    .fetch_one(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("add the dependencies of tasks"))
}

/// Begins the wait of a retried task again, if anything is left to wait for. Predecessors that have failed by now are forgiven, because
/// the caller of the retry knows of them: they do not cancel the task again. Later failures count.
pub(super) async fn restart_wait(
    conn: &mut PgConnection,
    task_id: Uuid,
) -> Result<(), StatementError> {
    // An end of the task in the same transaction is signalled now. Signalled at the commit, it would end the wait that begins here.
    sqlx::query!("set constraints dalsegno.tasks_tell_waiting immediate")
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("notify tasks that depend on an ended task"))?;
    sqlx::query!("set constraints dalsegno.tasks_tell_waiting deferred")
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("notify dependent tasks at the commit"))?;
    sqlx::query!(
        "update dalsegno.task_dependencies as d set forgiven_job = t.job_id
           from dalsegno.tasks as t
          where d.task_id = $1 and t.id = d.on_task_id and t.state in ('failed', 'cancelled')",
        task_id,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("ignore failed dependencies"))?;
    // Only a new row is counted at the commit.
    let before = sqlx::query!(
        "delete from dalsegno.task_waits where task_id = $1 returning on_failure, not_before",
        task_id,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("end the wait of a task"))?;
    let (on_failure, not_before) =
        before.map_or((None, None), |wait| (Some(wait.on_failure), wait.not_before));
    sqlx::query!(
        "insert into dalsegno.task_waits (task_id, on_failure, not_before) values ($1, coalesce($2, 'run'), $3)",
        task_id,
        on_failure,
        not_before,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("restart the wait of a task"))
}

/// Begins the wait of a task whose job is put aside in the same transaction, until its flow resumes. The caller keeps the flow from
/// resuming meanwhile.
pub async fn wait_for_flow(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("select dalsegno.wait_aside($1)", task_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("let a task wait for its flow"))
}

/// Returns true if a task was added to wait for others.
pub(super) async fn has_any(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.task_dependencies where task_id = $1) as "has_any!""#,
        task_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check whether a task waits for others"))
}

/// Returns the tasks that a task has waited for, in order, each with the first `max_chars` of its outcome.
pub async fn predecessors(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    max_chars: i32,
) -> Result<Vec<Predecessor>, StatementError> {
    sqlx::query_as!(
        Predecessor,
        r#"select t.id, t.agent, t.instance, t.state as "state: State", left(e.text, $2) as text,
                  greatest(coalesce(char_length(e.text), 0) - $2, 0) as "left_out_chars!"
             from dalsegno.task_dependencies as d
             join dalsegno.tasks as t on t.id = d.on_task_id
            cross join lateral (select case t.state when 'done' then t.result when 'failed' then t.error
                                                    when 'cancelled' then t.cancelled_because end as text) as e
            where d.task_id = $1 order by d.place"#,
        task_id,
        max_chars,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the dependencies of a task"))
}

/// Returns the waits of those of these tasks that wait or have waited.
pub async fn waits_of(
    executor: impl PgExecutor<'_>,
    task_ids: &[Uuid],
) -> Result<HashMap<Uuid, TaskWaits>, StatementError> {
    let rows = sqlx::query!(
        r#"select w.task_id, w.on_failure as "on_failure: OnFailure", w.over_at is null as "waits!",
                  t.id, t.agent, t.instance, t.state as "state: State"
             from dalsegno.task_waits as w
             join dalsegno.task_dependencies as d on d.task_id = w.task_id
             join dalsegno.tasks as t on t.id = d.on_task_id
            where w.task_id = any ($1) order by w.task_id, d.place"#,
        task_ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the dependencies of tasks"))?;
    let mut found: HashMap<Uuid, TaskWaits> = HashMap::new();
    for row in rows {
        let (on_failure, waits) = (row.on_failure, row.waits);
        let waiting = TaskWaits { depends_on: Vec::new(), on_failure, waits };
        let (task_id, agent, instance, state) = (row.id, row.agent, row.instance, row.state);
        let one = WaitedFor { task_id, agent, instance, state };
        found.entry(row.task_id).or_insert(waiting).depends_on.push(one);
    }
    Ok(found)
}

/// A range of the open waits.
pub struct WaitRange {
    /// The tasks whose wait should have ended.
    pub due: Vec<Uuid>,
    /// The last id of this range, from which the next one continues. `None` at the end.
    pub next: Option<Uuid>,
}

/// Checks a range of the open waits, for signals that were lost because they met a locked job.
pub async fn find_lost_signals(
    conn: &mut PgConnection,
    after: Uuid,
    stretch: i64,
) -> Result<WaitRange, StatementError> {
    let rows = sqlx::query!(
        r#"select w.task_id,
                  (own.ended_at is not null
                   -- A step of a paused flow needs no safety net: it is released when the flow resumes.
                   or (not exists (select from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
                                    where d.task_id = w.task_id and t.ended_at is null)
                       and not dalsegno.is_flow_paused(own.flow_id))
                   or (w.on_failure = 'cancel'
                       and exists (select from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
                                    where d.task_id = w.task_id and t.state in ('failed', 'cancelled')
                                      and d.forgiven_job is distinct from t.job_id))) as "is_due!"
             from dalsegno.task_waits as w join dalsegno.tasks as own on own.id = w.task_id
            where w.over_at is null and w.task_id > $1 order by w.task_id limit $2"#,
        after,
        stretch,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list waiting tasks"))?;
    let is_last = i64::try_from(rows.len()).is_ok_and(|n| n < stretch);
    Ok(WaitRange {
        due: rows.iter().filter(|row| row.is_due).map(|row| row.task_id).collect(),
        next: rows.last().filter(|_| !is_last).map(|row| row.task_id),
    })
}

/// Ends a wait that should have ended.
pub async fn end_wait(conn: &mut PgConnection, task_id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("select dalsegno.count_task_wait($1)", task_id)
        .fetch_one(conn)
        .await
        .map(drop)
        .map_err(StatementError::to("end the wait of a task"))
}

impl TaskWaits {
    pub fn n_open(&self) -> usize {
        self.depends_on.iter().filter(|other| !other.state.has_ended()).count()
    }
}
