//! Requests of people, in their own words.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The text of a request and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub task_id: Uuid,
    pub prompt: String,
    pub said_at: DateTime<Utc>,
}

/// Lists those of these tasks that people have requested since then. Leaves out children, continuations, steps of flows, and tasks
/// of erased campaigns.
pub async fn asked_by_people(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    since: DateTime<Utc>,
) -> Result<Vec<Request>, StatementError> {
    sqlx::query_as!(
        Request,
        r#"select id as task_id, prompt, created_at as said_at from dalsegno.tasks
            where id = any($1) and created_at >= $2 and parent_id is null and continues_id is null and flow_id is null
              and not dalsegno.is_erased(campaign_id)"#,
        ids,
        since,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the prompts of people"))
}

/// Returns those of these tasks that agents added as children, continuations or steps of a flow. Labels of people and of their programs
/// begin with the kind of key ([`crate::domain::audit::Actor::label`]). Labels of agents are their bare names.
pub async fn added_by_agents(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, StatementError> {
    let added = sqlx::query_scalar!(
        r"select id from dalsegno.tasks
           where id = any($1) and (parent_id is not null or continues_id is not null or flow_id is not null)
             and added_by !~ '^(key|admin_key|cli|system|anonymous)(:|$)'",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tasks that agents have added"))?;
    Ok(added.into_iter().collect())
}
