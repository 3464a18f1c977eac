//! Manifests: records of the context that each call was sent.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{StatementError, json_rows};

/// A manifest to store. Serialized as JSON, it is a row of a statement's parameter (`json_rows`).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct New<'a> {
    pub session_id: Uuid,
    pub turn: i32,
    /// Counts the calls of the turn from 0.
    pub call: i16,
    pub manifest: &'a Value,
    #[serde(serialize_with = "json_rows::bytea")]
    pub sha256: [u8; 32],
    pub estimated_tokens: i64,
    /// The provider's own count of the prompt.
    pub real_tokens: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    pub turn: i32,
    pub call: i16,
    pub created_at: DateTime<Utc>,
    pub estimated_tokens: i64,
    pub real_tokens: Option<i64>,
    pub manifest: Value,
}

#[cfg(test)]
impl New<'static> {
    pub(super) fn example() -> Self {
        Self {
            session_id: Uuid::nil(),
            turn: 1,
            call: 0,
            manifest: &Value::Null,
            sha256: [0; 32],
            estimated_tokens: 0,
            real_tokens: None,
        }
    }
}

pub async fn insert(
    executor: impl PgExecutor<'_>,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, real_tokens, sha256, manifest)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        new.session_id,
        new.turn,
        new.call,
        now,
        new.estimated_tokens,
        new.real_tokens,
        new.sha256.as_slice(),
        new.manifest,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store a manifest"))
}

/// Lists the manifests of a session after the given turn, in order.
pub async fn list(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    after_turn: i32,
    limit: i64,
) -> Result<Vec<Manifest>, StatementError> {
    sqlx::query_as!(
        Manifest,
        "select turn, call, created_at, estimated_tokens, real_tokens, manifest
           from dalsegno.manifests where session_id = $1 and turn > $2 order by turn, call limit $3",
        session_id,
        after_turn,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the manifests of a session"))
}
