//! Storing the attachments of new tasks.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Limits, NewAttachment, input::Space, types};
use crate::domain::{
    StatementError,
    task_files::{NewFiles, store_contents},
};

/// Place of the content of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    Upload { name: &'a str, content: &'a [u8] },
    Reference { name: &'a str, task_id: Uuid, file: &'a str },
}

/// A file of another task.
struct FoundFile {
    sha256: Option<Vec<u8>>,
    media_type: Option<String>,
    n_bytes: Option<i64>,
    problem: Option<String>,
}

/// Stores the contents that callers have sent. Comes before the tasks are enqueued, because turns, too, lock contents before lanes.
pub async fn store_uploads<'a>(
    conn: &mut PgConnection,
    attachments: impl Iterator<Item = &'a NewAttachment>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let mut contents = NewFiles::default();
    for (number, source) in attachments.filter_map(NewAttachment::source).enumerate() {
        if let Source::Upload { content, .. } = source {
            // Names of different tasks may be the same; only the contents are stored here.
            contents.add(&number.to_string(), content);
        }
    }
    store_contents(conn, &contents, now).await
}

/// Lists the tasks whose files are referred to.
pub fn referenced_tasks(attachments: &[NewAttachment]) -> impl Iterator<Item = (Uuid, &str)> {
    attachments.iter().filter_map(|attachment| match attachment.source()? {
        Source::Reference { task_id, file, .. } => Some((task_id, file)),
        Source::Upload { .. } => None,
    })
}

/// Stores the attachments of a task that was just added. Its contents are stored, and the caller has checked the reach of the caller.
pub async fn store(
    conn: &mut PgConnection,
    limits: &Limits,
    task_id: Uuid,
    attachments: &[NewAttachment],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let mut space = Space::default();
    let (mut names, mut digests) = (Vec::new(), Vec::new());
    for source in attachments.iter().filter_map(NewAttachment::source) {
        let (name, sha256) = match source {
            Source::Upload { name, content } => {
                space.take(limits, name, u64::try_from(content.len()).unwrap_or(u64::MAX))?;
                (name, Sha256::digest(content).to_vec())
            }
            Source::Reference { name, task_id, file } => {
                (name, find(&mut *conn, limits, &mut space, (name, task_id, file)).await?)
            }
        };
        names.push(name);
        digests.push(sha256);
    }
    sqlx::query!(
        "insert into dalsegno.task_attachments (attached_at, position, task_id, sha256, name)
         select $2, n.position::integer, $1, n.sha256, n.name
           from unnest($3::text[], $4::bytea[]) with ordinality as n (name, sha256, position)",
        task_id,
        now,
        &names as &[&str],
        &digests,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(|source| StatementError { action: "store the attachments of a task", source }.into())
}

/// Finds a file of another task, and locks its content against a removal.
async fn find(
    conn: &mut PgConnection,
    limits: &Limits,
    space: &mut Space,
    (name, task_id, file): (&str, Uuid, &str),
) -> Result<Vec<u8>, Error> {
    let unknown = || Error::UnknownFile { task_id, file: file.to_owned() };
    if file.contains('\0') {
        return Err(unknown());
    }
    let found = sqlx::query_as!(
        FoundFile,
        r#"select f.sha256 as "sha256?", f.problem as "problem?", c.media_type as "media_type?", c.n_bytes as "n_bytes?"
             from (select 1 as place, o.sha256, o.problem from dalsegno.task_files as o where o.task_id = $1 and o.name = $2
                   union all
                   select 2, a.sha256, null from dalsegno.task_attachments as a where a.task_id = $1 and a.name = $2) as f
             left join lateral (select l.media_type, l.n_bytes from dalsegno.file_contents as l where l.sha256 = f.sha256 for key share) as c
                    on true
            order by f.place limit 1"#,
        task_id,
        file,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("find a file to attach"))?
    .ok_or_else(unknown)?;
    let FoundFile { sha256, media_type, n_bytes, problem } = found;
    if let Some(problem) = problem {
        return Err(Error::NotStored { task_id, file: file.to_owned(), problem });
    }
    // A file that was replaced at the same moment has no content any more.
    let (Some(sha256), Some(media_type), Some(n_bytes)) = (sha256, media_type, n_bytes) else {
        return Err(unknown());
    };
    space.take(limits, name, u64::try_from(n_bytes).unwrap_or_default())?;
    types::check_accepted(name, &media_type)?;
    Ok(sha256)
}
