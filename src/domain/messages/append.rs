//! Adding to a transcript.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::word;
use crate::{
    domain::{Failed, text},
    transcript::Message,
};

/// A message to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// Of a prompt: the id of its task, which keeps a second attempt from saying it twice.
    pub id: Uuid,
    /// As [`storable`] leaves it; weight and digest are of exactly this.
    pub message: Message,
    pub weight: i64,
    pub digest: [u8; 32],
    pub partial: bool,
}

/// Messages as a statement takes them.
pub(in crate::domain) struct Columns<'a> {
    pub(in crate::domain) ids: Vec<Uuid>,
    pub(in crate::domain) roles: Vec<&'static str>,
    pub(in crate::domain) texts: Vec<&'a str>,
    pub(in crate::domain) weights: Vec<i64>,
    pub(in crate::domain) digests: Vec<&'a [u8]>,
    pub(in crate::domain) partials: Vec<bool>,
    pub(in crate::domain) calls: Vec<Option<serde_json::Value>>,
    pub(in crate::domain) call_ids: Vec<Option<&'a str>>,
    pub(in crate::domain) tools: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    pub(in crate::domain) fn of(new: &'a [New]) -> Self {
        Self {
            ids: new.iter().map(|new| new.id).collect(),
            roles: new.iter().map(|new| word(new.message.role)).collect(),
            texts: new.iter().map(|new| new.message.text.as_str()).collect(),
            weights: new.iter().map(|new| new.weight).collect(),
            digests: new.iter().map(|new| new.digest.as_slice()).collect(),
            partials: new.iter().map(|new| new.partial).collect(),
            calls: new.iter().map(calls).collect(),
            call_ids: new.iter().map(|new| new.message.tool_call_id.as_deref()).collect(),
            tools: new.iter().map(|new| new.message.tool_name.as_deref()).collect(),
        }
    }
}

/// A message as Postgres can hold it. To be called before weight and digest are taken.
pub fn storable(mut message: Message) -> Message {
    message.text = text::storable(message.text);
    for call in &mut message.tool_calls {
        call.id = text::storable(std::mem::take(&mut call.id));
        call.name = text::storable(std::mem::take(&mut call.name));
        text::storable_json(&mut call.arguments);
    }
    message.tool_call_id = message.tool_call_id.map(text::storable);
    message.tool_name = message.tool_name.map(text::storable);
    message
}

/// Adds messages from `first_seq` on, in one statement. The places come from the session's row, whose lock the caller
/// holds. A prompt that is already there is left out, and its place stays empty; where others have asked since, the caller
/// puts a notice in front of it ([`others_asked_since`]).
pub async fn append(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
    first_seq: i64,
    new: &[New],
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    if new.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(new);
    sqlx::query!(
        r#"insert into dalsegno.messages
                  (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
           select $1, $2 + m.ord - 1, $3, $4, m.id, m.role, m.text, m.weight, m.digest, m.partial, m.tool_calls, m.call_id, m.tool
             from unnest($5::uuid[], $6::text[], $7::text[], $8::bigint[], $9::bytea[], $10::boolean[],
                         $11::jsonb[], $12::text[], $13::text[])
                  with ordinality as m (id, role, text, weight, digest, partial, tool_calls, call_id, tool, ord)
           on conflict (session_id, id) where role = 'user' do nothing"#,
        session_id,
        first_seq,
        turn,
        now,
        &columns.ids,
        &columns.roles as _,
        &columns.texts as _,
        &columns.weights,
        &columns.digests as _,
        &columns.partials,
        &columns.calls as _,
        &columns.call_ids as _,
        &columns.tools as _,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("add to a transcript"))
}

/// Whether the prompt of a task is in the transcript, and prompts of others have come after it: then what is added now does
/// not stand behind its question.
pub async fn others_asked_since(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    task_id: Uuid,
) -> Result<bool, Failed> {
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
    .map_err(Failed::to("look for a prompt in a transcript"))
}

fn calls(new: &New) -> Option<serde_json::Value> {
    let calls = &new.message.tool_calls;
    let value = |call: &crate::transcript::ToolCall| serde_json::json!({ "id": call.id, "name": call.name, "arguments": call.arguments });
    (!calls.is_empty()).then(|| calls.iter().map(value).collect())
}
