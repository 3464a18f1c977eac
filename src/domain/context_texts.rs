//! Texts of contexts that no other row holds, each stored once by its digest.
//!
//! A text stays as long as a session uses it: a trigger removes it with its last use (migration `context_texts`).

use std::collections::HashMap;

use sqlx::PgExecutor;
use uuid::Uuid;

use super::StatementError;
use crate::context::{Digest, manifest::ContextText};

/// The call whose texts are stored.
#[derive(Debug, Clone, Copy)]
pub struct StoringCall {
    pub session_id: Uuid,
    /// Number and lease of its turn; `None` for a call beside turns.
    pub turn: Option<(i32, i64)>,
}

/// Stores texts, and that the session uses them. Runs alone and before the transaction that refers to them, so that it holds no lock that
/// another turn waits for longer than a moment. That transaction is written later to the same log, so this one need not wait for the disk.
///
/// Nothing is stored unless the turn runs under its lease, or for a session that was removed. Texts of facts that were removed meanwhile are skipped. Fails if a text was
/// removed with its last use at this moment; it can be repeated.
pub async fn store(
    executor: impl PgExecutor<'_>,
    call: &StoringCall,
    texts: &[&ContextText],
) -> Result<(), StatementError> {
    let digests: Vec<&[u8]> = texts.iter().map(|text| text.sha256.as_bytes().as_slice()).collect();
    let kinds: Vec<&str> = texts.iter().map(|text| text.kind.as_str()).collect();
    let contents: Vec<&str> = texts.iter().map(|text| &*text.text).collect();
    let sources: Vec<Option<Uuid>> = texts.iter().map(|text| text.source).collect();
    sqlx::query_file!(
        "src/domain/context_texts.sql",
        call.session_id,
        call.turn.map(|(turn, _)| turn) as Option<i32>,
        call.turn.map(|(_, lease)| lease) as Option<i64>,
        &digests as _,
        &kinds as _,
        &contents as _,
        &sources as _,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store the texts of a context"))
}

/// Finds the stored texts among these digests.
pub async fn find(
    executor: impl PgExecutor<'_>,
    digests: &[Digest],
) -> Result<HashMap<Digest, String>, StatementError> {
    let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    let rows = sqlx::query!(
        "select sha256, content from dalsegno.context_texts where sha256 = any($1)",
        &digests as _,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the texts of a context"))?;
    let text =
        |sha256: Vec<u8>, content| Some((Digest::from_bytes(sha256.try_into().ok()?), content));
    Ok(rows.into_iter().filter_map(|row| text(row.sha256, row.content)).collect())
}

/// Removes the uses of these sessions.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.context_text_uses where session_id = any($1)", session_ids)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove the texts of contexts"))
}

/// Removes up to `limit` texts that no session uses. Returns their number.
pub async fn remove_unused(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select dalsegno.remove_unused_context_texts(array(
             select t.sha256 from dalsegno.context_texts as t
              where not exists (select from dalsegno.context_text_uses as u where u.sha256 = t.sha256) limit $1)) as "n!""#,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove unused texts of contexts"))
}
