//! The prompts that sessions of an agent were made with.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Maximum number of versions in a list.
const MAX_VERSIONS: i64 = 100;

/// A version of an agent's prompt that sessions were made with. Versions end with the last of their sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PromptVersion {
    /// SHA-256 of the prompt; for the lead's main instance of prompt and roster.
    pub prompt_hash: String,
    /// True: sessions that open now are made with it.
    pub is_current: bool,
    /// The opening of its first session.
    pub first_used_at: DateTime<Utc>,
    /// The last use of one of its sessions.
    pub last_used_at: DateTime<Utc>,
    pub sessions: i64,
    pub turns: i64,
    /// The session that was used last.
    pub last_session_id: Uuid,
    /// Number of the last turn of that session.
    pub last_session_turns: i32,
    /// The session that was used last of those with a stored context. Null: no call has one, or an older version has answered.
    pub stored_session_id: Option<Uuid>,
    /// Number of its newest turn with a stored context.
    pub stored_turn: Option<i32>,
}

impl PromptVersion {
    /// Returns session and turn of a stored context.
    pub fn stored_context(&self) -> Option<(Uuid, i32)> {
        self.stored_session_id.zip(self.stored_turn)
    }
}

/// Lists the versions of an agent's prompt, the last used first. `current`: the hashes of sessions that open now.
pub async fn list(
    executor: impl PgExecutor<'_>,
    agent: &str,
    current: &[String],
) -> Result<Vec<PromptVersion>, StatementError> {
    sqlx::query_file_as!(
        PromptVersion,
        "src/domain/prompt_versions.sql",
        agent,
        current,
        MAX_VERSIONS,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the versions of a prompt"))
}
