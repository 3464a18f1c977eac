//! Files of tasks: those that agents write to `out/`.
//!
//! Contents are stored once per SHA-256, in a table that other files can refer to, too. A content stays as long as a row refers to it: a
//! trigger removes it with its last use (migration `task_files`).

mod config;
mod error;
mod media_type;
mod name;
mod store;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::{
    config::Config,
    error::Error,
    media_type::TEXT,
    name::{NameError, check as check_name},
    store::{NewFiles, record, store_contents},
};
use super::StatementError;

/// A file of a task, or one that could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskFile {
    /// A relative path, with `/` between its parts.
    pub name: String,
    /// By its content. Null: it is not stored.
    pub media_type: Option<String>,
    pub n_bytes: Option<i64>,
    /// In hexadecimal.
    pub sha256: Option<String>,
    /// The turn that has written it last.
    pub turn: i32,
    pub stored_at: DateTime<Utc>,
    /// The reason why it is not stored.
    pub problem: Option<String>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub media_type: String,
    pub content: Vec<u8>,
}

/// Lists the files of a task, by name.
pub async fn list(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Vec<TaskFile>, StatementError> {
    sqlx::query_as!(
        TaskFile,
        r#"select f.name, c.media_type as "media_type?", c.n_bytes as "n_bytes?", encode(f.sha256, 'hex') as "sha256?", f.turn, f.stored_at,
                  f.problem
             from dalsegno.task_files as f left join dalsegno.file_contents as c on c.sha256 = f.sha256
            where f.task_id = $1
            order by f.name"#,
        task_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the files of a task"))
}

/// Reads a file of a task.
pub async fn read(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    name: &str,
) -> Result<FileContent, Error> {
    // No stored name is refused, and the database takes no NUL.
    let unknown = || Error::Unknown { task_id, name: name.to_owned() };
    if name.contains('\0') {
        return Err(unknown());
    }
    let row = sqlx::query!(
        r#"select f.problem, c.media_type as "media_type?", c.content as "content?"
             from dalsegno.task_files as f left join dalsegno.file_contents as c on c.sha256 = f.sha256
            where f.task_id = $1 and f.name = $2"#,
        task_id,
        name,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a file of a task"))?
    .ok_or_else(unknown)?;
    match (row.media_type, row.content) {
        (Some(media_type), Some(content)) => Ok(FileContent { media_type, content }),
        _ => {
            let (name, problem) = (name.to_owned(), row.problem.unwrap_or_default());
            Err(Error::NotStored { task_id, name, problem })
        }
    }
}

/// Removes up to `limit` files of tasks of a campaign, and contents that no other file has. Returns the number of files.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_task_files($1, $2) as "n!""#, campaign_id, limit)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove the files of a campaign"))
}

/// Removes up to `limit` contents that no file has: of files that a later turn has replaced, and those that two removals at once have left.
/// Returns their number.
pub async fn remove_unused(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select dalsegno.remove_unused_file_contents(array(
             select c.sha256 from dalsegno.file_contents as c
              where not exists (select from dalsegno.task_files as f where f.sha256 = c.sha256) limit $1)) as "n!""#,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove unused contents of files"))
}
