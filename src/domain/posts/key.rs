//! Idempotency keys of posts.

use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Origin, Post, Trust};
use crate::domain::StatementError;

/// An idempotency key of a campaign's post.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    pub campaign_id: Uuid,
    pub key: &'a str,
    /// SHA-256 of the request.
    pub question: [u8; 32],
}

/// A post that an earlier request made under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedPost {
    pub post: Post,
    pub came_of_it: Value,
    /// True if the request is the same.
    pub is_same: bool,
}

/// Keeps other requests from posting under the key until the transaction ends. Must be taken before all other locks.
pub async fn lock_key(executor: impl PgExecutor<'_>, key: Key<'_>) -> Result<(), StatementError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('dalsegno post ' || $1::uuid::text || ' ' || $2::text, 0))",
        key.campaign_id,
        key.key,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("wait for another request with the same key"))
}

pub async fn find_by_key(
    executor: impl PgExecutor<'_>,
    key: Key<'_>,
) -> Result<Option<KeyedPost>, StatementError> {
    let found = sqlx::query!(
        r#"select p.id, p.seq, p.sender, p.origin as "origin: Origin",
                  dalsegno.trust_of_post(p.origin, p.author) as "trust!: Trust", p.author, p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id,
                  p.turn, p.text, k.came_of_it, k.question_sha256 = $3 as "is_same!"
             from dalsegno.post_keys as k join dalsegno.posts as p on p.campaign_id = k.campaign_id and p.id = k.post_id
            where k.campaign_id = $1 and k.key = $2"#,
        key.campaign_id,
        key.key,
        &key.question,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the post of a key"))?;
    Ok(found.map(|row| KeyedPost {
        post: Post {
            id: row.id,
            seq: row.seq,
            sender: row.sender,
            origin: row.origin,
            trust: row.trust,
            author: row.author,
            audience: row.audience,
            reply_to: row.reply_to,
            posted_at: row.posted_at,
            task_id: row.task_id,
            session_id: row.session_id,
            turn: row.turn,
            text: row.text,
        },
        came_of_it: row.came_of_it,
        is_same: row.is_same,
    }))
}

/// Stores the key of a post, in the transaction that adds the post.
pub async fn keep_key(
    executor: impl PgExecutor<'_>,
    key: Key<'_>,
    post_id: Uuid,
    came_of_it: &Value,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.post_keys (campaign_id, post_id, key, question_sha256, came_of_it) values ($1, $2, $3, $4, $5)",
        key.campaign_id,
        post_id,
        key.key,
        &key.question,
        came_of_it,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the key of a post"))
}
