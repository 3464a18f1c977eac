//! A task that hands work out and takes it up again: its children, and one more task in its own conversation that waits for all of
//! them and is told what they came to.
//!
//! Race: the task is cancelled at the same moment. Both lock its row, and look behind that: whoever cancels finds the children, or
//! whoever hands them out finds that it is cancelled.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    After, BulkError, Config, Error, Links, New, OnFailure, Placed, State, Task, add_many,
    links::MAX_CHILDREN,
};
use crate::domain::{
    Failed,
    agents::{Agent, SessionMode},
};

/// What is handed out, and what follows.
#[derive(Debug, Clone, Copy)]
pub struct Children<'a> {
    /// The task that hands them out, as it was read.
    pub parent: &'a Task,
    /// Its agent.
    pub agent: &'a Agent,
    /// Their parent is set here; they may wait for tasks, and for each other.
    pub children: &'a [New<'a>],
    /// What the parent's agent is asked when all of them have ended.
    pub continuation: &'a str,
    /// As for one task. Children get keys of their own.
    pub idempotency_key: Option<&'a str>,
    pub added_by: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FannedOut {
    /// In the order in which they were given.
    pub children: Vec<Placed>,
    pub continuation: Placed,
}

/// Adds the children and the task that waits for them, all or none. Places in errors are those of the children. After an error the
/// caller rolls back.
pub async fn fan_out(
    conn: &mut PgConnection,
    config: &Config,
    what: &Children<'_>,
    now: DateTime<Utc>,
) -> Result<FannedOut, BulkError> {
    let Children { parent, children, .. } = *what;
    if !(1..=MAX_CHILDREN).contains(&children.len()) {
        return Err(Error::NChildren(children.len()).into());
    }
    let parents = standing(&mut *conn, parent.id).await?;
    let mut news: Vec<New<'_>> = children
        .iter()
        .map(|child| New { links: Links { parent_id: Some(parent.id), ..child.links }, ..*child })
        .collect();
    let all: Vec<After> = (0..children.len()).map(|item| After::Item { item }).collect();
    news.push(New {
        campaign_id: parent.campaign_id,
        agent: what.agent,
        instance: &parent.instance,
        // Wherever the conversation stands.
        node: None,
        prompt: what.continuation,
        // In the parent's own conversation.
        session_mode: Some(SessionMode::Continue),
        budget: crate::domain::amount::Limit::default(),
        idempotency_key: what.idempotency_key,
        priority: None,
        run_at: None,
        added_by: what.added_by,
        traceparent: None,
        labels: Default::default(),
        links: Links {
            depends_on: &all,
            on_failure: OnFailure::Run,
            only_of: None,
            parent_id: None,
            continues_id: Some(parent.id),
            flow: None,
        },
    });
    let mut placed = add_many(conn, config, parent.campaign_id, &news, now).await?;
    // Only what is new: whoever asks again is told of the tasks that are there, whatever became of their parent.
    if placed.iter().any(|one| one.created) {
        parents.check(parent.id)?;
    }
    // One was added for each.
    let continuation = placed.pop().ok_or(Error::NChildren(0))?;
    Ok(FannedOut { children: placed, continuation })
}

/// Whether a task hands out. Who cancels it waits until the end of the transaction, and finds what it has handed out.
pub async fn hold_parent(conn: &mut PgConnection, id: Uuid) -> Result<(), Error> {
    standing(conn, id).await?.check(id)
}

/// What a parent has come to, which it stays until the end of the transaction.
struct Standing {
    state: State,
    /// Somebody has asked for it.
    is_cancelled: bool,
}

impl Standing {
    fn check(&self, id: Uuid) -> Result<(), Error> {
        match self.state {
            State::Running if self.is_cancelled => Err(Error::BeingCancelled(id)),
            State::Running | State::Done => Ok(()),
            state => Err(Error::NoParent { id, state }),
        }
    }
}

async fn standing(conn: &mut PgConnection, id: Uuid) -> Result<Standing, Error> {
    sqlx::query_as!(
        Standing,
        r#"select state as "state: State", cancelled_because is not null as "is_cancelled!" from dalsegno.tasks where id = $1 for share"#,
        id,
    )
    .fetch_optional(conn)
    .await
    .map_err(Failed::to("look at a task that hands work out"))?
    .ok_or(Error::Unknown(id))
}

/// The key of a child, where the whole has one: asked again, each of them is found.
pub fn child_key(key: &str, place: usize) -> String {
    format!("{key}/{place}")
}

/// Those of these tasks that a conversation has handed out: campaign, agent and instance.
pub async fn handed_out_by(
    executor: impl PgExecutor<'_>,
    (campaign_id, agent, instance): (Uuid, &str, &str),
    ids: &[Uuid],
) -> Result<Vec<Uuid>, Failed> {
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
    .map_err(Failed::to("look for tasks that were handed out"))
}

/// How many tasks lead to this one that each handed out the next or went on with it, counted up to `most`.
pub async fn depth(executor: impl PgExecutor<'_>, id: Uuid, most: i64) -> Result<i64, Failed> {
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
    .map_err(Failed::to("look at what led to a task"))
}

/// How many tasks the first of those that led to this one has come to, over all that handed work out or went on, counted up to
/// `most`. Itself is one of them.
pub async fn count_of_family(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    (most_above, most): (i64, i64),
) -> Result<i64, Failed> {
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
    .map_err(Failed::to("count what a task has led to"))
}
