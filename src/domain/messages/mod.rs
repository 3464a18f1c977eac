//! Messages: the append-only rows of a transcript.
//!
//! Weight and digest are measured when a message is written and are stored with it. A turn therefore measures only the messages that it
//! adds. Both depend on the message alone; this module stores them and does not interpret them.

mod append;
mod inherit;
mod interrupted_output;
mod prompt_place;
mod remove;
mod search;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub(super) use self::append::InsertRow;
pub use self::{
    append::{New, append, make_storable, others_asked_since},
    inherit::{InheritLimits, InheritResult, LeftOut, MaxWeight, inherit, last_seq_of_turn},
    interrupted_output::{LeftByTurn, read_turn_output},
    prompt_place::{PromptPlace, find_prompt, list_prompts_after},
    remove::{Size, count, measure, remove_all},
    search::{MessageHit, Search, search},
};
use super::{StatementError, task_files::attachments};
pub use crate::context::results::{EndOfTask, Results};
use crate::context::{Digest, Entry, Weight, posts::Posts};
use crate::transcript::{Message, Role, ToolCall};

/// One row of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = StoredMessage)]
pub struct StoredMessage {
    pub id: Uuid,
    pub seq: i64,
    pub turn: i32,
    /// True if the answer broke off when its turn was interrupted.
    pub partial: bool,
    /// True if the message is not sent again. The provider has rejected the prompt of its task, or a later prompt before it had answered
    /// anything.
    pub rejected: bool,
    pub created_at: DateTime<Utc>,
    #[serde(flatten)]
    pub message: Message,
    /// Size in thousandths of a token, before calibration.
    #[serde(skip)]
    pub weight: i64,
    /// SHA-256.
    #[serde(skip)]
    pub digest: [u8; 32],
    /// True for the prompt of a task that has files.
    #[serde(skip)]
    pub has_files: bool,
}

impl StoredMessage {
    /// Returns the posts of a message with the role of posts.
    pub fn posts(&self) -> Option<Posts<'_>> {
        (self.message.role == Role::Posts).then(|| Posts::of_entry(&self.message.text)).flatten()
    }

    /// Returns the results of other tasks that a notice tells.
    pub fn results(&self) -> Option<Results> {
        Results::of(&self.message)
    }

    /// Uses the weight and digest that were measured when the message was written.
    pub fn into_entry(self) -> Entry {
        let weight = Weight::from_millitokens(u64::try_from(self.weight).unwrap_or(0));
        let digest = Digest::from_bytes(self.digest);
        Entry::from_measured(self.id, self.seq, self.message, weight, digest)
            .with_partial(self.partial)
    }
}

/// Builds the entries of messages, with the attachments of the tasks whose prompts they are.
pub async fn into_entries(
    executor: impl PgExecutor<'_>,
    stored: Vec<StoredMessage>,
) -> Result<Vec<Entry>, StatementError> {
    let with = stored.iter().filter(|message| message.has_files);
    let with: Vec<Uuid> = with.map(|message| message.id).collect();
    let mut entries: Vec<Entry> = stored.into_iter().map(StoredMessage::into_entry).collect();
    if with.is_empty() {
        return Ok(entries);
    }
    let by_task = attachments::load(executor, &with).await?;
    for entry in &mut entries {
        if let Some(attachments) = by_task.get(&entry.id) {
            entry.attach(attachments.clone());
        }
    }
    Ok(entries)
}

/// A range of a transcript.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The place after which the range begins.
    pub after_seq: i64,
    pub limit: i64,
}

impl Span {
    pub fn all() -> Self {
        Self::after(0)
    }

    pub fn after(after_seq: i64) -> Self {
        Self { after_seq, limit: i64::MAX }
    }
}

/// Selects messages; `$rest` follows the name of the table.
macro_rules! select_messages {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"select id, seq, turn, partial, created_at, weight, digest, role, posts is not null as "are_posts!", text, tool_call_id, tool_name,
                  role = 'user' and exists (select from dalsegno.task_attachments as a where a.task_id = messages.id) as "has_files!",
                  tool_calls as "tool_calls: Json<Vec<ToolCall>>"
             from dalsegno.messages"# + $rest,
            $($argument),+
        )
    };
}

/// Lists a range of a session's transcript, in order. Never sets `rejected`: [`super::sessions::transcript`] does.
pub async fn list(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    span: Span,
) -> Result<Vec<StoredMessage>, StatementError> {
    let rows = select_messages!(
        "
            where session_id = $1 and seq > $2 order by seq limit $3",
        session_id,
        span.after_seq,
        span.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read a transcript"))?;
    rows.into_iter().map(StoredMessage::try_from).collect()
}

/// Lists the last messages of a range before a place, the newest first. Never sets `rejected`.
pub async fn list_before(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    span: Span,
    before_seq: i64,
) -> Result<Vec<StoredMessage>, StatementError> {
    let rows = select_messages!(
        "
            where session_id = $1 and seq > $2 and seq < $3 order by seq desc limit $4",
        session_id,
        span.after_seq,
        before_seq,
        span.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the end of a transcript"))?;
    rows.into_iter().map(StoredMessage::try_from).collect()
}

/// Lists the messages after a place, up to the end of a turn.
pub async fn list_up_to_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    after_seq: i64,
    turn: i32,
) -> Result<Vec<StoredMessage>, StatementError> {
    let rows = select_messages!(
        "
            where session_id = $1 and seq > $2 and turn <= $3 order by seq",
        session_id,
        after_seq,
        turn,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the messages of a context"))?;
    rows.into_iter().map(StoredMessage::try_from).collect()
}

/// Lists messages of a session by their ids.
pub async fn list_by_ids(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<StoredMessage>, StatementError> {
    let rows = select_messages!(
        "
            where session_id = $1 and id = any($2) order by seq",
        session_id,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the prompt of a context"))?;
    rows.into_iter().map(StoredMessage::try_from).collect()
}

/// Finds one message of a session's transcript by its id.
pub async fn find(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    id: Uuid,
) -> Result<Option<Message>, StatementError> {
    let row = select_messages!(
        "
            where session_id = $1 and id = $2 order by seq limit 1",
        session_id,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find an entry of a transcript"))?;
    Ok(row.map(StoredMessage::try_from).transpose()?.map(|stored| stored.message))
}

/// Lists what the model has said in a turn, in order.
pub async fn list_answers(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<Message>, StatementError> {
    let rows = select_messages!(
        " where session_id = $1 and turn = $2 and role = 'assistant' order by seq",
        session_id,
        turn,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the answers of a turn"))?;
    rows.into_iter().map(|row| Ok(StoredMessage::try_from(row)?.message)).collect()
}

/// Returns true if this message is in the transcript of a session.
pub async fn contains(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.messages where session_id = $1 and id = $2) as "holds!""#,
        session_id,
        id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find a message"))
}

struct Row {
    id: Uuid,
    seq: i64,
    turn: i32,
    partial: bool,
    created_at: DateTime<Utc>,
    weight: i64,
    digest: Vec<u8>,
    role: String,
    are_posts: bool,
    has_files: bool,
    text: String,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    tool_calls: Option<Json<Vec<ToolCall>>>,
}

impl TryFrom<Row> for StoredMessage {
    type Error = StatementError;

    fn try_from(row: Row) -> Result<Self, StatementError> {
        let odd = |what: &str| StatementError {
            action: "read a transcript",
            source: sqlx::Error::Decode(
                format!("message {} has an invalid {what}", row.seq).into(),
            ),
        };
        let role = match row.are_posts {
            true => Role::Posts,
            false => role(&row.role).ok_or_else(|| odd("role"))?,
        };
        let digest = row.digest.as_slice().try_into().map_err(|_| odd("digest"))?;
        Ok(Self {
            id: row.id,
            seq: row.seq,
            turn: row.turn,
            partial: row.partial,
            rejected: false,
            created_at: row.created_at,
            weight: row.weight,
            digest,
            has_files: row.has_files,
            message: Message {
                role,
                text: row.text,
                tool_calls: row.tool_calls.map(|Json(calls)| calls).unwrap_or_default(),
                tool_call_id: row.tool_call_id,
                tool_name: row.tool_name,
                media: Vec::new(),
            },
        })
    }
}

fn role(name: &str) -> Option<Role> {
    [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Notice]
        .into_iter()
        .find(|role| word(*role) == name)
}

fn word(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        // Posts are stored as notices, because older versions know no other role. Their column `posts` marks them.
        Role::Notice | Role::Posts => "notice",
    }
}
