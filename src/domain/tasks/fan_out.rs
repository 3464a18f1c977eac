//! Fan-out: a task's children, and a continuation in its own conversation that waits for all of them and gets their results.
//!
//! Race: the task is cancelled at the same time. Both transactions lock its row before they read. Either the cancellation finds the
//! children, or the fan-out finds the task cancelled.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    BulkError, BulkTask, Config, Error, Links, New, OnFailure, State, Task, TaskLink, add_many,
    links::MAX_CHILDREN,
};
use crate::domain::{
    StatementError,
    agents::{Agent, SessionMode},
};

/// A fan-out: the children and the continuation.
#[derive(Debug, Clone, Copy)]
pub struct FanOut<'a> {
    /// The parent, as it was read.
    pub parent: &'a Task,
    /// The parent's agent.
    pub agent: &'a Agent,
    /// The children. Their parent is set here; they may wait for tasks and for each other.
    pub children: &'a [New<'a>],
    /// The prompt of the continuation, for the parent's agent.
    pub continuation: &'a str,
    /// The continuation's idempotency key, as for one task. Children have keys of their own.
    pub idempotency_key: Option<&'a str>,
    pub added_by: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FannedOut {
    /// In the order of the request.
    pub children: Vec<BulkTask>,
    pub continuation: BulkTask,
}

/// Adds the children and the continuation, all or none. Indexes in errors are those of the children. After an error the caller must roll
/// back.
pub async fn fan_out(
    conn: &mut PgConnection,
    config: &Config,
    what: &FanOut<'_>,
    now: DateTime<Utc>,
) -> Result<FannedOut, BulkError> {
    let FanOut { parent, children, .. } = *what;
    if !(1..=MAX_CHILDREN).contains(&children.len()) {
        return Err(Error::NChildren(children.len()).into());
    }
    let parents = lock_state(&mut *conn, parent.id).await?;
    let mut news: Vec<New<'_>> = children
        .iter()
        .map(|child| New { links: Links { parent_id: Some(parent.id), ..child.links }, ..*child })
        .collect();
    let all: Vec<TaskLink> = (0..children.len()).map(|item| TaskLink::Item { item }).collect();
    news.push(New {
        instance: &parent.instance,
        // Stays at the node where the conversation is.
        node: None,
        // Runs in the parent's own conversation.
        session_mode: Some(SessionMode::Continue),
        idempotency_key: what.idempotency_key,
        added_by: what.added_by,
        links: Links {
            depends_on: &all,
            on_failure: OnFailure::Run,
            only_of: None,
            parent_id: None,
            continues_id: Some(parent.id),
            flow: None,
            // A continuation has those of its task.
            flow_templates: None,
        },
        ..New::for_agent(parent.campaign_id, what.agent, what.continuation)
    });
    let mut placed = add_many(conn, config, parent.campaign_id, &news, now).await?;
    // Only for new tasks: a repeated request returns the existing ones, even if their parent has ended since.
    if placed.iter().any(|one| one.created) {
        parents.check(parent.id)?;
    }
    // One task was added for each.
    let continuation = placed.pop().ok_or(Error::NChildren(0))?;
    Ok(FannedOut { children: placed, continuation })
}

/// Checks that a task may have children, and locks it. A concurrent cancellation waits until the transaction ends, and finds the
/// children.
pub async fn check_and_lock_parent(conn: &mut PgConnection, id: Uuid) -> Result<(), Error> {
    lock_state(conn, id).await?.check(id)
}

/// The state of a parent, locked until the transaction ends.
struct ParentState {
    state: State,
    /// True if a cancellation was requested.
    is_cancelled: bool,
}

impl ParentState {
    fn check(&self, id: Uuid) -> Result<(), Error> {
        match self.state {
            State::Running if self.is_cancelled => Err(Error::BeingCancelled(id)),
            State::Running | State::Done => Ok(()),
            state => Err(Error::NoParent { id, state }),
        }
    }
}

async fn lock_state(conn: &mut PgConnection, id: Uuid) -> Result<ParentState, Error> {
    sqlx::query_as!(
        ParentState,
        r#"select state as "state: State", cancelled_because is not null as "is_cancelled!" from dalsegno.tasks where id = $1 for share"#,
        id,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read the parent of new tasks"))?
    .ok_or(Error::Unknown(id))
}

/// Returns the key of a child under the key of the fan-out, so that a repeated request finds each child.
pub fn child_key(key: &str, place: usize) -> String {
    format!("{key}/{place}")
}

/// Returns those of these tasks that are children of a conversation's tasks. The conversation is campaign, agent and instance.
pub async fn filter_children_of(
    executor: impl PgExecutor<'_>,
    (campaign_id, agent, instance): (Uuid, &str, &str),
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select t.id from dalsegno.tasks as t join dalsegno.tasks as p on p.id = t.parent_id
          where t.id = any($4) and p.campaign_id = $1 and p.agent = $2 and p.instance = $3",
        campaign_id,
        agent,
        instance,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the children of a task"))
}

/// Counts the ancestors of a task over parents and continued tasks, up to `most`.
pub async fn depth(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    most: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with recursive above (id, n) as (
               select $1::uuid, 0::bigint
               union all
               select coalesce(t.parent_id, t.continues_id), a.n + 1
                 from above as a join dalsegno.tasks as t on t.id = a.id
                where coalesce(t.parent_id, t.continues_id) is not null and a.n < $2)
           select max(n) as "n!" from above"#,
        id,
        most,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the chain of a task"))
}

/// Counts the tasks of a family up to `most`: the oldest ancestor, at most `most_above` steps up, and all its descendants.
pub async fn count_of_family(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    (most_above, most): (i64, i64),
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with recursive above (id, n) as (
               select $1::uuid, 0::bigint
               union all
               select coalesce(t.parent_id, t.continues_id), a.n + 1
                 from above as a join dalsegno.tasks as t on t.id = a.id
                where coalesce(t.parent_id, t.continues_id) is not null and a.n < $2),
           family (id) as (
               (select id from above order by n desc limit 1)
               union
               select o.id
                 from family as f
                cross join lateral (
                    select t.id from dalsegno.tasks as t where t.parent_id = f.id
                    union all
                    select t.id from dalsegno.tasks as t where t.continues_id = f.id) as o)
           select count(*) as "n!" from (select id from family limit $3) as counted"#,
        id,
        most_above,
        most,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the tasks of a chain"))
}
