//! The prompts that sessions of an agent were made with.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::{
    context::{Digest, manifest::Kind},
    domain::{
        StatementError, context_texts,
        manifests::{self, Part},
    },
};

/// Maximum number of versions in a list.
const MAX_VERSIONS: i64 = 100;

/// Digits of a hash that lists show.
const SHORT_HASH_DIGITS: usize = 12;

/// Returns the beginning of a hash that lists show.
pub fn short_hash(prompt_hash: &str) -> &str {
    prompt_hash.get(..SHORT_HASH_DIGITS).unwrap_or(prompt_hash)
}

/// Returns the name of a version of an agent's prompt, and the command that prints it.
pub fn describe_version(agent: &str, prompt_hash: &str) -> [String; 2] {
    let hash = short_hash(prompt_hash);
    [
        format!("{hash} of the agent's prompt"),
        format!("`dalsegno agent versions {agent} --show {hash}`"),
    ]
}

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

/// Reads the text of a version: the prompt of the agent as the newest stored call had it. `None`: it is not stored.
pub async fn find_text(
    conn: &mut PgConnection,
    version: &PromptVersion,
) -> Result<Option<String>, StatementError> {
    let Some((session_id, turn)) = version.stored_context() else { return Ok(None) };
    let calls = manifests::of_turn(&mut *conn, session_id, turn).await?;
    let parts = calls.iter().flat_map(|call| &call.parts);
    let Some(digest) = prompt_digest(parts) else { return Ok(None) };
    let mut texts = context_texts::find(conn, &[digest]).await?;
    Ok(texts.remove(&digest))
}

/// Returns the digest of the agent's prompt among the parts of a context.
fn prompt_digest<'a>(mut parts: impl Iterator<Item = &'a Part>) -> Option<Digest> {
    let prompt = parts.find(|part| part.kind == Kind::AgentPrompt.as_str())?;
    serde_json::from_value(Value::from(prompt.sha256.clone()?)).ok()
}
