//! Cascading cancellation: of a task with its descendants, which are its children and its continuations, recursively.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    CancelOutcome, Error, InterruptMode,
    cancel::{StopResult, cancel_one},
    get, interrupt,
};
use crate::domain::StatementError;

/// Stops a task and its descendants. The caller answers their posts last, when all other locks are taken.
pub(super) async fn stop(
    conn: &mut PgConnection,
    id: Uuid,
    how: InterruptMode,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<StopResult, Error> {
    let task = get(&mut *conn, id).await?;
    let own = match stop_one(&mut *conn, id, how, reason, now).await {
        Err(error) if !matches!(error, Error::Ended { .. }) => return Err(error),
        own => own,
    };
    // Looks for descendants under the task's lock. A concurrent fan-out has committed by then, or finds that the task is cancelled. The
    // job is locked before the task. Turns lock them the other way round, but their jobs run, and a cancellation locks no such job.
    lock(&mut *conn, id).await?;
    let mut open = list_open_descendants(&mut *conn, id).await?;
    let mut all = match own {
        Err(Error::Ended { .. }) if !open.is_empty() => {
            StopResult::without_answer(CancelOutcome::HadEnded)
        }
        stopped => stopped?,
    };
    let (agent, instance) = (&task.agent, &task.instance);
    let why =
        format!("{reason} (together with task {id} of {agent}/{instance}, on which it depends)");
    let mut seen: HashSet<Uuid> = HashSet::new();
    while !open.is_empty() {
        for other in &open {
            match stop_one(&mut *conn, *other, how, &why, now).await {
                Ok(stopped) => {
                    all.below.count(stopped.cancelled);
                    all.unanswered.extend(stopped.unanswered);
                }
                // It has ended by itself.
                Err(Error::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        seen.extend(open);
        // Children that one of these added until it was locked.
        open = list_open_descendants(&mut *conn, id).await?;
        open.retain(|other| !seen.contains(other));
    }
    Ok(all)
}

async fn stop_one(
    conn: &mut PgConnection,
    id: Uuid,
    how: InterruptMode,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<StopResult, Error> {
    match how {
        InterruptMode::Hard => cancel_one(conn, id, reason, now).await,
        InterruptMode::Soft => interrupt::stop_softly(conn, id, reason, now).await,
    }
}

/// Lists the open descendants of a task. For a continuation, these include the children that it waits for. Waiting tasks come first, so
/// that the end of a child or step does not start them.
async fn list_open_descendants(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"with recursive below (id) as (
               select $1::uuid
               union
               select o.id
                 from below as b
                cross join lateral (
                    select t.id from dalsegno.tasks as t where t.parent_id = b.id
                    union all
                    select t.id from dalsegno.tasks as t where t.continues_id = b.id
                    union all
                    select t.id from dalsegno.task_dependencies as d
                      join dalsegno.tasks as own on own.id = d.task_id
                      join dalsegno.tasks as t on t.id = d.on_task_id and t.parent_id = own.continues_id
                     where d.task_id = b.id) as o)
           select t.id as "id!" from below as b join dalsegno.tasks as t on t.id = b.id
            where t.id <> $1 and t.ended_at is null
            order by t.continues_id is null, t.step_place desc nulls last, t.id"#,
        id,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("list the dependent tasks of a task"))
}

/// Locks a task until the transaction ends, so that it gets no children meanwhile.
async fn lock(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("select id from dalsegno.tasks where id = $1 for no key update", id)
        .fetch_optional(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("lock a task"))
}

/// Lists the tasks and flows that a task has started and that are cancelled or being cancelled, by the ids that it was told. If a
/// continuation was cancelled, includes all that it waits for. Of a retried step, the last task counts.
pub(super) async fn list_cancelled_descendants(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"with over (id, flow_id, continues_id) as (
               select t.id, t.flow_id, t.continues_id from dalsegno.tasks as t
                where (t.parent_id = $1 or t.continues_id = $1)
                  and (t.state = 'cancelled' or t.ended_at is null and t.cancelled_because is not null)
                  and not exists (select from dalsegno.tasks as later
                                   where later.flow_id = t.flow_id and later.step_place = t.step_place and later.id > t.id))
           select coalesce(o.flow_id, o.id) as "id!" from over as o where o.continues_id is null
            union
           select d.on_task_id from over as o join dalsegno.task_dependencies as d on d.task_id = o.id where o.continues_id = $1"#,
        id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tasks that were cancelled with a task"))
}
