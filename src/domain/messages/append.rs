//! Appending messages to a transcript.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::word;
use crate::{
    domain::{StatementError, json_rows, text},
    transcript::{Message, Role, ToolCall},
};

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct New {
    /// The id. For a prompt, its task's id: a second attempt then does not append the prompt again.
    pub id: Uuid,
    /// The message, as returned by [`make_storable`]; `weight` and `digest` are measured on exactly this.
    pub message: Message,
    pub weight: i64,
    pub digest: [u8; 32],
    pub partial: bool,
}

/// A row of the JSON parameter of the statements that append messages.
#[derive(Debug, Serialize)]
pub(in crate::domain) struct InsertRow<'a> {
    /// Offset from the first place that the statement fills.
    pub(in crate::domain) place: i64,
    id: Uuid,
    role: &'static str,
    text: &'a str,
    weight: i64,
    #[serde(serialize_with = "json_rows::bytea")]
    digest: &'a [u8; 32],
    partial: bool,
    tool_calls: Option<&'a [ToolCall]>,
    tool_call_id: Option<&'a str>,
    tool_name: Option<&'a str>,
}

impl<'a> InsertRow<'a> {
    /// Builds the rows of consecutive messages.
    pub(in crate::domain) fn all(new: &'a [New]) -> Vec<Self> {
        new.iter().zip(0..).map(|(new, place)| Self::of(new, place)).collect()
    }

    pub(in crate::domain) fn is_prompt(&self) -> bool {
        self.role == word(Role::User)
    }

    fn of(new: &'a New, place: i64) -> Self {
        let New { id, message, weight, digest, partial } = new;
        Self {
            place,
            id: *id,
            role: word(message.role),
            text: &message.text,
            weight: *weight,
            digest,
            partial: *partial,
            tool_calls: (!message.tool_calls.is_empty()).then_some(&message.tool_calls),
            tool_call_id: message.tool_call_id.as_deref(),
            tool_name: message.tool_name.as_deref(),
        }
    }
}

/// Replaces characters that Postgres cannot store. Must be called before weight and digest are measured.
pub fn make_storable(mut message: Message) -> Message {
    message.text = text::make_storable(message.text);
    for call in &mut message.tool_calls {
        call.id = text::make_storable(std::mem::take(&mut call.id));
        call.name = text::make_storable(std::mem::take(&mut call.name));
        text::make_json_storable(&mut call.arguments);
        if let Some(thinking) = &mut call.thinking {
            text::make_json_storable(thinking);
        }
    }
    message.tool_call_id = message.tool_call_id.map(text::make_storable);
    message.tool_name = message.tool_name.map(text::make_storable);
    message
}

/// Appends messages from `first_seq` on, in one statement. The places come from the session's row, which the caller has locked.
///
/// A prompt that exists already is skipped, and its place stays empty. If other tasks have asked since, the caller puts a notice in front
/// of it ([`others_asked_since`]).
pub async fn append(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
    first_seq: i64,
    new: &[New],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    if new.is_empty() {
        return Ok(());
    }
    sqlx::query_file!(
        "src/domain/messages/append.sql",
        session_id,
        turn,
        first_seq,
        now,
        Json(InsertRow::all(new)) as _,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("append to a transcript"))
}

/// Returns true if the prompt of a task is in the transcript and prompts of other tasks follow it. Then messages appended now are
/// separated from their prompt.
pub async fn others_asked_since(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    task_id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (
               select from dalsegno.messages as own
                 join dalsegno.messages as other
                   on other.session_id = own.session_id and other.seq > own.seq and other.role = 'user'
                where own.session_id = $1 and own.id = $2 and own.role = 'user') as "others!""#,
        session_id,
        task_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find a prompt in a transcript"))
}

#[cfg(test)]
impl InsertRow<'static> {
    pub(in crate::domain) fn example() -> Self {
        Self {
            place: 0,
            id: Uuid::nil(),
            role: "user",
            text: "",
            weight: 0,
            digest: &[0; 32],
            partial: false,
            tool_calls: None,
            tool_call_id: None,
            tool_name: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_message_rows() {
        let (row, sql) = (InsertRow::example(), include_str!("append.sql"));
        columns::assert_are_fields_of(&row, sql, "jsonb_to_recordset($5)");
    }
}
