//! Transcript files of a provider, byte for byte, so that any host can resume a conversation.
//!
//! A turn appends to a file or replaces it, in its own transaction. Races: the session's row is locked by then, so writers exclude each
//! other.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::StatementError;

/// A file, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub n_bytes: i64,
    pub sha256: Vec<u8>,
}

/// The bytes that a turn adds to a file; with `from_byte` 0, the whole file.
#[derive(Debug, Clone, Copy)]
pub struct FileGrowth<'a> {
    pub name: &'a str,
    pub from_byte: i64,
    pub bytes: &'a [u8],
    /// The digest of the whole file afterwards.
    pub sha256: &'a [u8; 32],
}

/// Lists the files of a session by name.
pub async fn files(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<File>, StatementError> {
    sqlx::query_as!(
        File,
        "select name, n_bytes, sha256 from dalsegno.transcript_files where session_id = $1 order by name",
        session_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the files of a transcript"))
}

/// Reads all bytes of a file.
pub async fn bytes(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    name: &str,
) -> Result<Vec<u8>, StatementError> {
    let chunks = sqlx::query_scalar!(
        "select bytes from dalsegno.transcript_chunks where session_id = $1 and name = $2 order by from_byte",
        session_id,
        name,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read a transcript"))?;
    Ok(chunks.concat())
}

/// Stores the bytes that a turn added.
pub async fn add(
    conn: &mut PgConnection,
    session_id: Uuid,
    added: &FileGrowth<'_>,
) -> Result<(), StatementError> {
    let n_added = i64::try_from(added.bytes.len()).unwrap_or(i64::MAX);
    sqlx::query!(
        "insert into dalsegno.transcript_files (session_id, name, n_bytes, sha256) values ($1, $2, $3, $4)
         on conflict (session_id, name) do update set n_bytes = excluded.n_bytes, sha256 = excluded.sha256",
        session_id,
        added.name,
        added.from_byte.saturating_add(n_added),
        added.sha256,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("store the state of a transcript"))?;
    if added.from_byte == 0 {
        remove_chunks(&mut *conn, session_id, added.name).await?;
    }
    sqlx::query!(
        "insert into dalsegno.transcript_chunks (session_id, name, from_byte, bytes) values ($1, $2, $3, $4)",
        session_id,
        added.name,
        added.from_byte,
        added.bytes,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("append to a stored transcript"))
}

/// Removes all files of a session, which are then rebuilt.
pub async fn remove(executor: impl PgExecutor<'_>, session_id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.transcript_files where session_id = $1", session_id)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("forget a transcript"))
}

async fn remove_chunks(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    name: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.transcript_chunks where session_id = $1 and name = $2",
        session_id,
        name,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("replace a file of a transcript"))
}

/// Returns the total size of the files of these sessions, in bytes.
pub async fn measure_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(sum(n_bytes), 0)::bigint as "bytes!" from dalsegno.transcript_files where session_id = any($1)"#,
        session_ids,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the bytes of transcripts"))
}

/// Removes the files of these sessions permanently. Returns their size in bytes.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with gone as (delete from dalsegno.transcript_files where session_id = any($1) returning n_bytes)
           select coalesce(sum(n_bytes), 0)::bigint as "bytes!" from gone"#,
        session_ids,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove the transcripts of sessions"))
}
