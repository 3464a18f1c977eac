//! What people have asked, in their own words.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// The words of a request, and when they were said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub task_id: Uuid,
    pub prompt: String,
    pub said_at: DateTime<Utc>,
}

/// Of these tasks, those that people have asked since: not what agents handed on, nor what a template says, nor what was erased.
pub async fn asked_by_people(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    since: DateTime<Utc>,
) -> Result<Vec<Request>, Failed> {
    sqlx::query_as!(
        Request,
        r#"select id as task_id, prompt, created_at as said_at from dalsegno.tasks
            where id = any($1) and created_at >= $2 and parent_id is null and continues_id is null and flow_id is null
              and prompt <> $3"#,
        ids,
        since,
        crate::domain::text::ERASED,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("read what people have asked"))
}

/// Of these tasks, those that agents handed on, follow up themselves or started as a flow. Labels of people and of their programs
/// begin with the kind of key, as [`crate::domain::audit::Actor::label`] writes them; those of agents are their bare names.
pub async fn added_by_agents(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, Failed> {
    let added = sqlx::query_scalar!(
        r"select id from dalsegno.tasks
           where id = any($1) and (parent_id is not null or continues_id is not null or flow_id is not null)
             and added_by !~ '^(key|admin_key|cli|system|anonymous)(:|$)'",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("read which tasks agents have added"))?;
    Ok(added.into_iter().collect())
}
