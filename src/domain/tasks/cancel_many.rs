//! Cancelling many tasks in a few statements.
//!
//! Race: other transactions end, extend and cancel the same tasks meanwhile, and lock tasks, jobs and sessions in other orders. This
//! transaction therefore never waits for a row: it skips locked tasks, and tasks that need more than a few columns. The caller cancels the
//! rest one by one. It waits only for the ends of flows, before it holds any lock.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, State};
use crate::{
    domain::{
        StatementError,
        agents::SessionMode as Mode,
        feed::{self, Kind},
        turns, webhooks,
    },
    queue::admin,
};

/// Maximum number of tasks of one transaction.
pub const CANCEL_MANY_MAX: i64 = 1_000;

/// The tasks that are cancelled together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelScope {
    /// Tasks of a campaign that is being erased. Their descendants are cancelled, too, and no post is answered.
    Erasure,
    /// Only tasks without descendants and without a post that they came from.
    Plain,
}

struct Row {
    id: Uuid,
    campaign_id: Uuid,
    session_id: Option<Uuid>,
    session_mode: Mode,
    turn: Option<i32>,
    job_id: i64,
}

/// Cancels those of these tasks that can be cancelled together, and returns their ids. Running tasks are left out.
pub async fn cancel_many(
    conn: &mut PgConnection,
    ids: &[Uuid],
    scope: CancelScope,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, Error> {
    hold_flows(&mut *conn, ids).await?;
    let mut rows = lock(&mut *conn, ids, scope == CancelScope::Plain).await?;
    if scope == CancelScope::Plain {
        let hung_on = filter_parents(&mut *conn, ids).await?;
        rows.retain(|row| !hung_on.contains(&row.id));
    }
    // Leaves out tasks that need more: a lost worker may have left a turn running, and an ephemeral session has to be closed.
    let turns: Vec<_> = rows.iter().filter_map(|row| Some((row.session_id?, row.turn?))).collect();
    let left = turns::left_running(&mut *conn, &turns).await?;
    rows.retain(|row| {
        let has_own_session = row.session_mode == Mode::None && row.session_id.is_some();
        !left.contains(&row.id) && !has_own_session
    });
    let job_ids: Vec<i64> = rows.iter().map(|row| row.job_id).collect();
    let gone: HashSet<i64> =
        admin::cancel_jobs(&mut *conn, &job_ids, reason).await?.into_iter().collect();
    rows.retain(|row| gone.contains(&row.job_id));
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    webhooks::set_batching(&mut *conn, true).await?;
    end(&mut *conn, &ids, reason, now).await?;
    webhooks::set_batching(&mut *conn, false).await?;
    webhooks::write_deliveries(&mut *conn, &ids).await?;
    let events: Vec<feed::New> = rows.iter().map(|row| event(row, reason)).collect();
    feed::append(conn, &events, now).await?;
    Ok(ids)
}

/// Locks the ends of the tasks' flows in the order of ids. A transaction that ends a task of a flow takes this lock at its commit, while
/// it holds the task.
async fn hold_flows(executor: impl PgExecutor<'_>, ids: &[Uuid]) -> Result<(), StatementError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('dalsegno flow ' || f.id, 0))
           from (select distinct flow_id as id from dalsegno.tasks
                  where id = any ($1) and ended_at is null and flow_id is not null order by 1 offset 0) as f",
        ids,
    )
    .fetch_all(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("lock flows before their end"))
}

async fn lock(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    is_plain: bool,
) -> Result<Vec<Row>, StatementError> {
    sqlx::query_as!(
        Row,
        r#"select id, campaign_id, session_id, session_mode as "session_mode: Mode", turn, job_id from dalsegno.tasks
            where id = any ($1) and ended_at is null and (not $2 or (post_id is null and continues_id is null))
            order by id for no key update skip locked"#,
        ids,
        is_plain,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("lock tasks"))
}

/// Returns those of these tasks that have children or a continuation. The caller holds their locks, so none are added meanwhile.
async fn filter_parents(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select k.id as "id!" from unnest($1::uuid[]) as k (id)
            where exists (select from dalsegno.tasks as t where t.parent_id = k.id)
               or exists (select from dalsegno.tasks as t where t.continues_id = k.id)"#,
        ids,
    )
    .fetch_all(executor)
    .await
    .map(|ids| ids.into_iter().collect())
    .map_err(StatementError::to("list the dependent tasks of tasks"))
}

async fn end(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.tasks
            set state = $2, result = null, error = null, ended_at = $3, cancelled_because = $4
          where id = any ($1)",
        ids,
        State::Cancelled as State,
        now,
        reason,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("cancel tasks"))
}

fn event(row: &Row, reason: &str) -> feed::New {
    feed::New {
        campaign_id: Some(row.campaign_id),
        task_id: Some(row.id),
        session_id: row.session_id,
        kind: Kind::TaskCancelled,
        data: json!({ "reason": reason }),
    }
}
