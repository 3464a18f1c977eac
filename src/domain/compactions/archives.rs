//! Archives: messages that compactions have removed from a session's view, to be read back.
//!
//! Nothing is stored for them: the messages are in the transcript, and what replaced them is in the compaction.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Cause, Compaction, Error, get};
use crate::domain::{
    StatementError,
    messages::{Span, StoredMessage},
    sessions,
};

/// The messages that one compaction has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Archive {
    pub id: Uuid,
    /// The generation of the compaction.
    pub number: i32,
    pub trigger: Cause,
    /// The node of the session.
    pub node: Option<String>,
    pub compacted_at: DateTime<Utc>,
    /// First and last place of the replaced messages.
    pub from_seq: i64,
    pub to_seq: i64,
    /// The first of these places that the summary covers; null: it covers all of them.
    pub summarised_from_seq: Option<i64>,
    /// The archive whose replacement stood in front of these messages and was replaced with them; 0: none.
    pub parent: i32,
    pub tokens_before: i64,
    pub tokens_after: Option<i64>,
    /// Time of an undo, after which the messages are shown again.
    pub undone_at: Option<DateTime<Utc>>,
}

/// An archive with its messages.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpenedArchive {
    #[serde(flatten)]
    pub archive: Archive,
    pub replacement: Replacement,
    /// A page of the replaced messages, in order.
    pub messages: Vec<StoredMessage>,
    /// The cursor of the next page; null on the last one.
    pub next: Option<String>,
}

/// The text that replaces the messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Replacement {
    /// The position in the work, from rows: ids, hand-offs, the node's instructions, the waiting message.
    #[schema(value_type = Option<Object>)]
    pub flow: Option<serde_json::Value>,
    /// Texts of people, word for word: whole prompts, and sentences of others.
    #[schema(value_type = Option<Object>)]
    pub prompts: Option<serde_json::Value>,
    pub summary: String,
}

/// Lists the archives of a session in the order of their creation. A compaction that the session took over is an archive of its
/// predecessor.
pub async fn archives(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<Archive>, StatementError> {
    sqlx::query_as!(
        Archive,
        r#"select md5('archive ' || session_id || '/' || generation)::uuid as "id!", generation as number,
                  cause as "trigger!: Cause", node,
                  applied_at as "compacted_at!", from_seq, to_seq, (flow ->> 'first_seq')::bigint as summarised_from_seq, parent,
                  tokens_before, tokens_after, undone_at
             from dalsegno.compactions
            where session_id = $1 and outcome = 'applied' and cause <> 'inherited' order by generation"#,
        session_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the archives of a session"))
}

/// Reads one archive, with up to `limit` of its messages behind `after_seq`.
pub async fn open_archive(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: i32,
    after_seq: i64,
    limit: i64,
) -> Result<OpenedArchive, Error> {
    let unknown = || Error::NoArchive { session_id, number };
    let all = archives(&mut *conn, session_id).await?;
    let archive = all.into_iter().find(|archive| archive.number == number).ok_or_else(unknown)?;
    let Compaction { flow, prompts, summary, .. } =
        get(&mut *conn, session_id, number).await?.ok_or_else(unknown)?;
    let span = Span { after_seq: after_seq.max(archive.from_seq - 1), limit: limit + 1 };
    let mut messages = sessions::transcript(conn, session_id, span).await?;
    messages.retain(|stored| stored.seq <= archive.to_seq);
    let page = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = messages.len() > page;
    messages.truncate(page);
    let next = messages.last().map(|last| last.seq.to_string()).filter(|_| has_more);
    let replacement = Replacement { flow, prompts, summary: summary.unwrap_or_default() };
    Ok(OpenedArchive { archive, replacement, messages, next })
}
