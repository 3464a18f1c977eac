//! The neutral form of a conversation: the entries of a session, on any provider.
//!
//! Plain data. `domain` stores it, `context` chooses from it, `providers` send it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a session's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    pub role: Role,
    pub text: String,
    /// Calls an assistant message makes; empty for every other role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call a `Tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool a `Tool` message comes from; of a `User` message, the agent that asked it on the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Files that are sent with the message, in order of their places. Stored messages have none: the task of a prompt has them.
    #[serde(skip)]
    pub media: Vec<Media>,
}

/// A file of a task.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Place among the files of its task, from 1.
    pub position: i32,
    pub name: String,
    pub media_type: String,
    pub n_bytes: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    pub kind: FileKind,
    /// `None`: the content was removed.
    pub content: Option<Arc<[u8]>>,
}

/// Kind of a file, with the facts that its tokens are estimated from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Text,
    /// Width and height; `None` if the header of the file does not tell them.
    Image {
        pixels: Option<(u32, u32)>,
    },
    /// `None` if the file does not list its pages in the clear.
    Pdf {
        pages: Option<u32>,
    },
}

/// A file that is sent with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Place in the text of the message, in bytes.
    pub at: usize,
    pub attachment: Arc<Attachment>,
}

/// A stretch of a message: text, or a file between two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    File(&'a Attachment),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
    /// Words of the service itself inside a conversation: interrupted turns, restored sessions.
    Notice,
    /// Posts of the campaign's board that the model was shown. The text is their JSON.
    Posts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    /// Thinking before the call, in the form of the provider that made it. Only that provider reads it, and sends it back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Value>,
}

impl Message {
    /// Creates a message without calls that answers none.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            media: Vec::new(),
        }
    }

    /// Adds text and files of another message after a blank line.
    pub fn append(&mut self, other: &Self) {
        self.text.push_str("\n\n");
        let at = self.text.len();
        self.text.push_str(&other.text);
        self.media.extend(other.media.iter().map(|media| media.moved_by(at)));
    }

    /// Returns the agent that asked on the board. `None` for requests of people, and for messages that are not requests.
    pub fn asking_agent(&self) -> Option<&str> {
        self.tool_name.as_deref().filter(|_| self.role == Role::User)
    }

    /// Returns the approximate size in memory, without files.
    pub fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter().map(ToolCall::bytes);
        size_of::<Self>() + self.text.len() + calls.sum::<usize>()
    }
}

impl ToolCall {
    fn bytes(&self) -> usize {
        let texts = self.id.len() + self.name.len();
        let thinking = self.thinking.as_ref().map_or(0, bytes_of);
        size_of::<Self>() + texts + bytes_of(&self.arguments) + thinking
    }
}

/// Returns the approximate size of a JSON value in memory.
fn bytes_of(value: &Value) -> usize {
    let contents: usize = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| size_of::<String>() + name.len() + bytes_of(value))
            .sum(),
    };
    size_of::<Value>() + contents
}

/// Without the content, which is long and belongs to the campaign.
impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("name", &self.name)
            .field("media_type", &self.media_type)
            .field("n_bytes", &self.n_bytes)
            .finish_non_exhaustive()
    }
}

impl Media {
    /// Returns the file at its place in a text that has `n_bytes` more in front.
    pub fn moved_by(&self, n_bytes: usize) -> Self {
        Self { at: self.at + n_bytes, attachment: Arc::clone(&self.attachment) }
    }
}

/// Splits a text at its files. Blank lines around the places of files are left out.
pub fn pieces<'a>(text: &'a str, media: &'a [Media]) -> Vec<Piece<'a>> {
    let mut pieces = Vec::with_capacity(2 * media.len() + 1);
    let mut from = 0;
    let push_text = |pieces: &mut Vec<Piece<'a>>, text: &'a str, is_first: bool| {
        let text = if is_first { text } else { text.trim_start_matches('\n') };
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
    };
    for media in media {
        let at = media.at.clamp(from, text.len());
        push_text(&mut pieces, text.get(from..at).unwrap_or_default(), from == 0);
        pieces.push(Piece::File(&media.attachment));
        from = at;
    }
    push_text(&mut pieces, text.get(from..).unwrap_or_default(), from == 0);
    pieces
}

/// A tool that a model may call, as described to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of its arguments, which are an object.
    pub input_schema: Value,
}

impl ToolSpec {
    /// Encodes tools as the JSON array that stored contexts have.
    pub fn list_to_json(tools: &[Arc<Self>]) -> String {
        let tools: Vec<&Self> = tools.iter().map(|tool| &**tool).collect();
        // Maps with text keys, so there is nothing that JSON could not say.
        serde_json::to_string(&tools).unwrap_or_default()
    }
}
