//! Events of the stream, as far as they are used.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{lenient, text::Text};

#[derive(Debug)]
pub enum Event<'a> {
    /// A turn begins.
    Init(Init<'a>),
    /// The API is called again after a pause: the child is alive.
    Retry(Retry<'a>),
    /// The history was replaced by a summary.
    Compacted,
    /// State of the credential's rate limit. Sent for subscriptions, never for an API key.
    RateLimit(RateLimit<'a>),
    /// One block of an answer.
    Assistant(AssistantLine<'a>),
    /// Results of tools, and texts that the CLI adds in the user's name.
    Exchange(Exchange<'a>),
    /// A piece of an answer that is still being written.
    Stream(StreamLine<'a>),
    /// The answer to a control request.
    Controlled(ControlResponse<'a>),
    /// The end of a turn.
    Result(Box<TurnResult>),
    /// A type that is not used here, as raw bytes.
    Other { kind: Text<'a>, raw: &'a [u8] },
    /// A line that is not an event.
    Garbage(&'a [u8]),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Init<'a> {
    #[serde(borrow)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub mcp_servers: Vec<McpServer<'a>>,
    #[serde(borrow)]
    pub tools: Vec<Text<'a>>,
}

/// Answer to a control request. Contains the servers if the request asked for them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControlResponse<'a> {
    #[serde(borrow)]
    pub response: Response<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response<'a> {
    #[serde(borrow)]
    pub request_id: Text<'a>,
    #[serde(borrow)]
    pub response: Option<Servers<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Servers<'a> {
    #[serde(borrow, rename = "mcpServers")]
    pub mcp_servers: Vec<McpServer<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct McpServer<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    /// `connected`, `pending`, `failed`, `needs-auth`.
    #[serde(borrow)]
    pub status: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Retry<'a> {
    #[serde(deserialize_with = "lenient::count")]
    pub attempt: Option<u64>,
    #[serde(borrow)]
    pub error: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RateLimit<'a> {
    /// `allowed`, `allowed_warning`, `rejected`.
    #[serde(borrow)]
    pub status: Option<Text<'a>>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "lenient::count", rename = "resetsAt")]
    pub resets_at: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct AssistantLine<'a> {
    #[serde(borrow, default)]
    pub session_id: Option<Text<'a>>,
    /// Id of this line, here and in the session's file.
    #[serde(borrow, default)]
    pub uuid: Option<Text<'a>>,
    /// Set for the answers of subagents.
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    /// Set if the CLI itself reports a failure of the API.
    #[serde(borrow, default)]
    pub error: Option<Text<'a>>,
    #[serde(borrow)]
    pub message: Reply<'a>,
}

/// An answer of the API as it begins: its output is not counted yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reply<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Vec<Block<'a>>,
    pub usage: Option<Tokens>,
}

/// A block of any type, on which it depends which fields are set.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub thinking: Option<Text<'a>>,
    /// Id of a `tool_use`.
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    /// Id of the call that a `tool_result` answers.
    #[serde(borrow)]
    pub tool_use_id: Option<Text<'a>>,
    /// Content of a `tool_result`: a text, or blocks.
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub struct Exchange<'a> {
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub message: ExchangeMessage<'a>,
}

#[derive(Debug, Deserialize)]
pub struct ExchangeMessage<'a> {
    /// A text, or blocks.
    #[serde(borrow)]
    pub content: &'a RawValue,
}

#[derive(Debug, Deserialize)]
pub struct StreamLine<'a> {
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub event: Change<'a>,
}

/// An event of the API's own stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Change<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    /// `message_start`.
    #[serde(borrow)]
    pub message: Option<Box<Reply<'a>>>,
    /// `content_block_start`.
    #[serde(borrow)]
    pub content_block: Option<Box<Block<'a>>>,
    /// `content_block_delta` and `message_delta`.
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    /// `message_delta`: the final counts of this answer.
    pub usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub stop_reason: Option<Text<'a>>,
}

/// Counts of one answer of the API, or of a whole turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Tokens {
    #[serde(deserialize_with = "lenient::count")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub cache_creation_input_tokens: Option<u64>,
}

/// The last line of a turn. Owned, because it outlives the stream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TurnResult {
    pub uuid: Option<String>,
    pub session_id: Option<String>,
    pub subtype: String,
    /// `None` does not mean success.
    pub is_error: Option<bool>,
    #[serde(deserialize_with = "lenient::count")]
    pub api_error_status: Option<u64>,
    pub terminal_reason: Option<String>,
    pub stop_reason: Option<String>,
    /// The last text block only, which is not the whole answer.
    pub result: Option<String>,
    pub errors: Vec<String>,
    /// Cost of the process up to now, not of this turn.
    #[serde(deserialize_with = "lenient::number")]
    pub total_cost_usd: Option<f64>,
    /// Tokens of this turn. All zero after some errors and fallbacks.
    pub usage: Tokens,
    /// Usage of the process up to now, by model.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// JSON that matches the requested schema.
    pub structured_output: Option<Box<RawJson>>,
    pub permission_denials: Vec<Denial>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    #[serde(deserialize_with = "lenient::count")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::count")]
    pub cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::number", rename = "costUSD")]
    pub cost_usd: Option<f64>,
    #[serde(deserialize_with = "lenient::count")]
    pub context_window: Option<u64>,
}

/// A tool call that was denied because no rule allows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Denial {
    pub tool_name: String,
}

/// Any JSON value.
pub type RawJson = serde_json::Value;
