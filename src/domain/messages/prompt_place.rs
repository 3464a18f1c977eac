//! Prompts of people in a transcript.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The place of a prompt in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPlace {
    pub seq: i64,
    pub turn: i32,
    /// The task of the prompt, which has the same id.
    pub task_id: Uuid,
}

/// Finds the prompt of a task in a session. A later attempt of the task does not store it again.
pub async fn find_prompt(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    task_id: Uuid,
) -> Result<Option<PromptPlace>, StatementError> {
    sqlx::query_as!(
        PromptPlace,
        "select seq, turn, id as task_id from dalsegno.messages where session_id = $1 and id = $2 and role = 'user'",
        session_id,
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the prompt of a task"))
}

/// Lists the newest prompts of people after `after_seq`, in transcript order. Leaves out prompts of agents and those that the session
/// inherited from its predecessor. Also leaves out `without_turns`, because the provider has rejected their prompts.
pub async fn list_prompts_after(
    executor: impl PgExecutor<'_>,
    (session_id, opened_at): (Uuid, DateTime<Utc>),
    after_seq: i64,
    without_turns: &[i32],
    limit: i64,
) -> Result<Vec<PromptPlace>, StatementError> {
    // On a request from an agent, `tool_name` is that agent.
    sqlx::query_as!(
        PromptPlace,
        r#"select a.seq, a.turn, a.id as task_id
             from (select seq, turn, id from dalsegno.messages
                    where session_id = $1 and role = 'user' and tool_name is null and seq > $2 and created_at >= $3
                      and turn <> all($5)
                    order by seq desc limit $4) as a
            order by a.seq"#,
        session_id,
        after_seq,
        opened_at,
        limit,
        without_turns,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the prompts of people"))
}
