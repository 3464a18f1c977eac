//! A task that hands work out and takes it up again: its children, and one more task in its own conversation that waits for all of
//! them and is told what they came to.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{
    After, BulkError, Config, Error, Links, New, OnFailure, Placed, State, Task, add_many,
};
use crate::domain::agents::Agent;

/// As many as one task may wait for.
pub const MAX_CHILDREN: usize = super::MAX_PREDECESSORS;

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

/// Adds the children and the task that waits for them, all or none. Places in errors are those of the children.
pub async fn fan_out(
    conn: &mut PgConnection,
    config: &Config,
    what: &Children<'_>,
    now: DateTime<Utc>,
) -> Result<FannedOut, BulkError> {
    let Children { parent, children, .. } = *what;
    check(parent, children.len())?;
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
        session_mode: Some(super::Mode::Continue),
        budget: crate::domain::amount::Limit::default(),
        idempotency_key: what.idempotency_key,
        priority: None,
        run_at: None,
        added_by: what.added_by,
        traceparent: None,
        links: Links {
            depends_on: &all,
            on_failure: OnFailure::Run,
            parent_id: None,
            continues_id: Some(parent.id),
            flow: None,
        },
    });
    let mut placed = add_many(conn, config, parent.campaign_id, &news, now).await?;
    // One was added for each.
    let continuation = placed.pop().ok_or(Error::NChildren(0))?;
    Ok(FannedOut { children: placed, continuation })
}

fn check(parent: &Task, n_children: usize) -> Result<(), Error> {
    if !(1..=MAX_CHILDREN).contains(&n_children) {
        return Err(Error::NChildren(n_children));
    }
    match parent.state {
        State::Running | State::Done => Ok(()),
        state => Err(Error::NoParent { id: parent.id, state }),
    }
}

/// The key of a child, where the whole has one: asked again, each of them is found.
pub fn child_key(key: &str, place: usize) -> String {
    format!("{key}/{place}")
}
