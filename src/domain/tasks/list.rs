//! Looking tasks up.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, State, Task};
use crate::domain::agents::SessionMode as Mode;
use crate::domain::{
    Page, StatementError,
    ids::{self, PartialId},
};

/// Selects whole tasks; `$rest` follows the name of the table.
macro_rules! select_task_rows {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Task,
            r#"select id, campaign_id, agent, instance, session_mode as "session_mode: Mode", state as "state: State", prompt, result,
                  result_json, error, budget_micros, budget_tokens, spent_micros, spent_tokens, job_id, session_id, turn, created_at,
                  started_at, ended_at
             from dalsegno.tasks"# + $rest,
            $($argument),+
        )
    };
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Task, Error> {
    select_task_rows!(" where id = $1", id,)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read a task"))?
        .ok_or(Error::Unknown(id))
}

/// Returns true if a task has ended. Cheap enough for polling.
pub async fn has_ended(executor: impl PgExecutor<'_>, id: Uuid) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"select ended_at is not null as "has_ended!" from dalsegno.tasks where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("check whether a task has ended"))?
    .ok_or(Error::Unknown(id))
}

/// Returns the task that a job runs.
pub async fn by_job(executor: impl PgExecutor<'_>, job_id: i64) -> Result<Task, Error> {
    select_task_rows!(" where job_id = $1", job_id,)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("find the task of a job"))?
        .ok_or(Error::NoTaskOfJob(job_id))
}

/// Resolves the id of a task that a person has given.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("task", "task ls"),
        "dalsegno.tasks",
        "campaign_id",
        "t.agent || '/' || t.instance || ', ' || t.state || ': ' || left(t.prompt, 60)"
    )
}

/// Returns the tasks with these ids, the newest first.
pub(super) async fn of_ids(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<Task>, StatementError> {
    select_task_rows!(" where id = any($1) order by id desc", ids,)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("read tasks"))
}

/// Lists the tasks of one conversation (campaign, agent, instance), the newest first.
pub async fn of_conversation(
    executor: impl PgExecutor<'_>,
    (campaign_id, agent, instance): (Uuid, &str, &str),
    state: Option<State>,
    page: Page,
) -> Result<Vec<Task>, StatementError> {
    select_task_rows!(
        "
            where campaign_id = $1 and agent = $2 and instance = $3 and ($4::text is null or state = $4)
              and id < coalesce($5, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by id desc limit $6",
        campaign_id,
        agent,
        instance,
        state as Option<State>,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tasks of a conversation"))
}

/// Returns those of these tasks that belong to the campaign.
pub async fn filter_in_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.tasks where id = any($2) and campaign_id = $1",
        campaign_id,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tasks of a campaign"))
}

/// The campaign and the caller of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub campaign_id: Uuid,
    /// The name of an API key; empty for a task that was added without one.
    pub caller: String,
}

pub async fn owner(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Owner, Error> {
    sqlx::query_as!(
        Owner,
        r#"select campaign_id, dalsegno.caller_of(added_by) as "caller!" from dalsegno.tasks where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the author of a task"))?
    .ok_or(Error::Unknown(id))
}

/// The campaign and the agent of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressee {
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
}

/// Returns the addressee of a task, without its texts, which may be long.
pub async fn addressee(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Option<Addressee>, StatementError> {
    sqlx::query_as!(
        Addressee,
        "select campaign_id, agent, instance from dalsegno.tasks where id = $1",
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the agent of a task"))
}
