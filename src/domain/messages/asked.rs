//! Where people have asked something.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// A place in the transcript where something was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub seq: i64,
    pub turn: i32,
    /// Its task: the prompt has the same id.
    pub task_id: Uuid,
}

/// The newest requests of people behind a place of a session, in their order. What agents asked of each other is none, and neither is
/// what the session has taken over from the one before it. `without_turns` are left out: the provider has rejected their prompts.
pub async fn asked_after(
    executor: impl PgExecutor<'_>,
    (session_id, opened_at): (Uuid, DateTime<Utc>),
    after_seq: i64,
    without_turns: &[i32],
    limit: i64,
) -> Result<Vec<Asked>, Failed> {
    // Of a request that an agent made, `tool_name` is that agent.
    sqlx::query_as!(
        Asked,
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
    .map_err(Failed::to("look for what people have asked"))
}
