//! Reading attachments for the calls of their tasks.

use std::{collections::HashMap, sync::Arc};

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{
    context::attachments::{pages_of, pixels_of},
    domain::{StatementError, task_files::TEXT},
    transcript::{Attachment, FileKind},
};

/// Reads the attachments of tasks with their contents, by task and in order.
pub async fn load(
    executor: impl PgExecutor<'_>,
    task_ids: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Arc<Attachment>>>, StatementError> {
    let rows = sqlx::query!(
        r#"select a.task_id, a.position, a.name, a.sha256, c.media_type, c.n_bytes, c.content
             from dalsegno.task_attachments as a join dalsegno.file_contents as c on c.sha256 = a.sha256
            where a.task_id = any($1) order by a.task_id, a.position"#,
        task_ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the attachments of tasks"))?;
    let mut by_task: HashMap<Uuid, Vec<Arc<Attachment>>> = HashMap::new();
    for row in rows {
        let sha256 = row.sha256.try_into().map_err(|_| StatementError {
            action: "read the attachments of tasks",
            source: sqlx::Error::Decode("a digest does not have 32 bytes".into()),
        })?;
        let attachment = Attachment {
            position: row.position,
            name: row.name,
            n_bytes: u64::try_from(row.n_bytes).unwrap_or_default(),
            sha256,
            kind: kind_of(&row.media_type, &row.content),
            media_type: row.media_type,
            content: Some(row.content.into()),
        };
        by_task.entry(row.task_id).or_default().push(Arc::new(attachment));
    }
    Ok(by_task)
}

fn kind_of(media_type: &str, content: &[u8]) -> FileKind {
    match media_type {
        TEXT => FileKind::Text,
        "application/pdf" => FileKind::Pdf { pages: pages_of(content) },
        _ => FileKind::Image { pixels: pixels_of(content) },
    }
}
