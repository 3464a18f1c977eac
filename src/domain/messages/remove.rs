//! Removal of transcripts, the only place where messages are deleted.

use std::collections::HashMap;

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The size of a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub messages: i64,
    /// Size of texts and tool calls, in bytes.
    pub bytes: i64,
}

/// Measures the transcripts of these sessions. Sessions without messages are left out.
pub async fn measure(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<Vec<(Uuid, Size)>, StatementError> {
    sqlx::query!(
        r#"select session_id, count(*) as "messages!",
                  sum(octet_length(text) + coalesce(octet_length(tool_calls::text), 0))::bigint as "bytes!"
             from dalsegno.messages where session_id = any($1) group by session_id"#,
        session_ids,
    )
    .map(|row| (row.session_id, Size { messages: row.messages, bytes: row.bytes }))
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("count the bytes of transcripts"))
}

/// Counts the messages of these sessions. Sessions without messages are left out.
pub async fn count(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<HashMap<Uuid, i64>, StatementError> {
    sqlx::query!(
        r#"select session_id, count(*) as "messages!" from dalsegno.messages where session_id = any($1) group by session_id"#,
        session_ids,
    )
    .map(|row| (row.session_id, row.messages))
    .fetch_all(executor)
    .await
    .map(|counts| counts.into_iter().collect())
    .map_err(StatementError::to("count the messages of sessions"))
}

/// Removes all messages and manifests of these sessions permanently.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<Size, StatementError> {
    sqlx::query!(
        r#"select n_messages as "messages!", n_bytes as "bytes!" from dalsegno.remove_transcripts($1)"#,
        session_ids,
    )
    .map(|row| Size { messages: row.messages, bytes: row.bytes })
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove the messages of sessions"))
}
