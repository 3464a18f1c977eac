//! Sessions with open tasks, and jobs of open tasks.

use std::collections::HashSet;

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::{StatementError, sessions::DueSession};

/// An open task with its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    pub id: Uuid,
    pub agent: String,
    pub instance: String,
}

/// Returns those of these sessions that have an open task: any of the conversation, or for an ephemeral session its own task.
pub async fn filter_awaited(
    executor: impl PgExecutor<'_>,
    sessions: &[DueSession],
) -> Result<HashSet<Uuid>, StatementError> {
    let open = || sessions.iter().filter(|session| session.is_open());
    let ids: Vec<Uuid> = open().map(|session| session.id).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let campaigns: Vec<Uuid> = open().map(|session| session.campaign_id).collect();
    let agents: Vec<&str> = open().map(|session| session.agent.as_str()).collect();
    let instances: Vec<&str> = open().map(|session| session.instance.as_str()).collect();
    let own: Vec<Option<Uuid>> = open().map(DueSession::own_task).collect();
    sqlx::query_scalar!(
        r#"select c.session_id as "session_id!"
             from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[])
                  as c(session_id, campaign_id, agent, instance, own_task)
            where case when c.own_task is null
                       then exists (select from dalsegno.tasks as t
                                     where t.campaign_id = c.campaign_id and t.agent = c.agent and t.instance = c.instance
                                       and t.ended_at is null)
                       else exists (select from dalsegno.tasks as t where t.id = c.own_task and t.ended_at is null) end"#,
        &ids,
        &campaigns,
        &agents as &[&str],
        &instances as &[&str],
        &own as &[Option<Uuid>],
    )
    .fetch_all(executor)
    .await
    .map(|ids| ids.into_iter().collect())
    .map_err(StatementError::to("list tasks that wait for sessions"))
}

/// Lists the open tasks of a conversation: first those that may run now, in the order in which they were added.
pub async fn open_of_conversation(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.tasks where campaign_id = $1 and agent = $2 and instance = $3 and ended_at is null
          order by coalesce(run_at, created_at) > now(), id",
        campaign_id,
        agent,
        instance,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the open tasks of a conversation"))
}

/// Lists the first `limit` open tasks of each of these conversations (agent and instance), in the order of [`open_of_conversation`].
pub async fn open_of_conversations(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    conversations: &[(&str, &str)],
    limit: i64,
) -> Result<Vec<OpenTask>, StatementError> {
    if conversations.is_empty() {
        return Ok(Vec::new());
    }
    let (agents, instances): (Vec<&str>, Vec<&str>) = conversations.iter().copied().unzip();
    sqlx::query_as!(
        OpenTask,
        r#"select o.id as "id!", o.agent as "agent!", o.instance as "instance!"
             from unnest($2::text[], $3::text[]) as c (agent, instance)
            cross join lateral (
              select t.id, t.agent, t.instance, coalesce(t.run_at, t.created_at) > now() as is_later
                from dalsegno.tasks as t
               where t.campaign_id = $1 and t.agent = c.agent and t.instance = c.instance and t.ended_at is null
               order by is_later, t.id limit $4) as o
            order by o.agent, o.instance, o.is_later, o.id"#,
        campaign_id,
        &agents as &[&str],
        &instances as &[&str],
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the open tasks of conversations"))
}

/// Lists the jobs of an agent's open tasks, in one campaign or in all.
pub async fn queued_jobs(
    executor: impl PgExecutor<'_>,
    campaign_id: Option<Uuid>,
    agent: &str,
) -> Result<Vec<i64>, StatementError> {
    sqlx::query_scalar!(
        "select job_id from dalsegno.tasks where ended_at is null and agent = $2 and ($1::uuid is null or campaign_id = $1)",
        campaign_id,
        agent,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the jobs of an agent"))
}

/// Lists the posts that open tasks of a campaign answer.
pub async fn list_awaiting_posts(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select distinct post_id as "post_id!" from dalsegno.tasks
            where campaign_id = $1 and ended_at is null and post_id is not null"#,
        campaign_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the posts of open tasks"))
}
