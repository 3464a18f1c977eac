//! Files of tasks: those that agents write to `out/`, and those that tasks are given ([`attachments`]).
//!
//! Contents are stored once per SHA-256. A content stays as long as a row refers to it: a trigger removes it with its last use (migrations
//! `task_files` and `task_attachments`).

pub mod attachments;

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
    config::{Config, LIMITS},
    error::Error,
    media_type::TEXT,
    name::{NameError, check as check_name},
    store::{NewFiles, record, store_contents},
};
use super::StatementError;

/// A file of a task, or one that could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskFile {
    #[serde(default)]
    pub direction: FileDirection,
    /// A relative path, with `/` between its parts.
    pub name: String,
    /// By its content. Null: it is not stored.
    pub media_type: Option<String>,
    pub n_bytes: Option<i64>,
    /// In hexadecimal.
    pub sha256: Option<String>,
    /// The turn that has written it last. Null: it is an attachment.
    pub turn: Option<i32>,
    pub stored_at: DateTime<Utc>,
    /// The reason why it is not stored.
    pub problem: Option<String>,
}

/// Origin of a file of a task.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema, sqlx::Type,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum FileDirection {
    /// An attachment: the task was given it.
    In,
    /// An output file: its agent has written it.
    #[default]
    Out,
}

impl FileDirection {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub media_type: String,
    pub content: Vec<u8>,
}

/// Lists the files of a task: its attachments in order, then its output files by name.
pub async fn list(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Vec<TaskFile>, StatementError> {
    sqlx::query_as!(
        TaskFile,
        r#"select f.direction as "direction!: FileDirection", f.name as "name!", c.media_type as "media_type?", c.n_bytes as "n_bytes?",
                  encode(f.sha256, 'hex') as "sha256?", f.turn as "turn?", f.stored_at as "stored_at!", f.problem as "problem?"
             from (select 'in' as direction, a.position, a.name, a.sha256, null::integer as turn, a.attached_at as stored_at, null as problem
                     from dalsegno.task_attachments as a where a.task_id = $1
                   union all
                   select 'out', 0, o.name, o.sha256, o.turn, o.stored_at, o.problem from dalsegno.task_files as o where o.task_id = $1) as f
             left join dalsegno.file_contents as c on c.sha256 = f.sha256
            order by f.direction, f.position, f.name"#,
        task_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the files of a task"))
}

/// Reads a file of a task. Without a direction an output file comes before an attachment of the same name.
pub async fn read(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    name: &str,
    direction: Option<FileDirection>,
) -> Result<FileContent, Error> {
    // No stored name is refused, and the database takes no NUL.
    let unknown = || Error::Unknown { task_id, name: name.to_owned() };
    if name.contains('\0') {
        return Err(unknown());
    }
    let row = sqlx::query!(
        r#"select f.problem as "problem?", c.media_type as "media_type?", c.content as "content?"
             from (select 'out' as direction, o.sha256, o.problem from dalsegno.task_files as o where o.task_id = $1 and o.name = $2
                   union all
                   select 'in', a.sha256, null from dalsegno.task_attachments as a where a.task_id = $1 and a.name = $2) as f
             left join dalsegno.file_contents as c on c.sha256 = f.sha256
            where $3::text is null or f.direction = $3
            order by f.direction desc limit 1"#,
        task_id,
        name,
        direction as Option<FileDirection>,
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

/// Removes up to `limit` attachments of tasks of a campaign, and contents that nothing else has. Returns the number of attachments.
pub async fn remove_some_attachments(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select dalsegno.remove_task_attachments($1, $2) as "n!""#,
        campaign_id,
        limit
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove the attachments of a campaign"))
}

/// Removes up to `limit` contents that no file has: of files that a later turn has replaced, and those that two removals at once have left.
/// Returns their number.
pub async fn remove_unused(
    executor: impl PgExecutor<'_>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_some_unused_file_contents($1) as "n!""#, limit)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove unused contents of files"))
}
