//! Request to a provider.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Conversation;
use crate::transcript::{Message, ToolSpec};

/// One call: everything that the model is shown, and its limits in tokens and time.
#[derive(Debug, Clone)]
pub struct Request {
    /// The turn that this call belongs to. Another attempt at the same turn carries the same name.
    pub turn: String,
    pub purpose: Purpose,
    pub model: String,
    /// The leading system message. Fresh on every call, so it is not part of `messages`.
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    /// Tools that the model may call. The caller carries the calls out, and asks again with the results. This is for providers that are
    /// sent the whole conversation. One that keeps it itself gets its tools from [`Grants`](super::Grants).
    pub tools: Vec<Arc<ToolSpec>>,
    /// Window that the caller planned with: prompt and answer together. A provider whose model has less says so in
    /// [`Outcome::window_tokens`](super::Outcome::window_tokens).
    pub window_tokens: u32,
    /// The part of the window that is left for the answer.
    pub reserve_tokens: u32,
    /// Number of prompt tokens that the caller expects. Providers that may silently lose a part of the prompt compare it with the server's
    /// count. Without it they cannot notice.
    pub estimated_prompt_tokens: Option<u32>,
    pub options: Options,
    pub timeouts: Timeouts,
    /// For providers that keep the conversation themselves; the others are sent all of it and ignore this. Without it such a provider
    /// answers in a conversation that it forgets at once.
    pub conversation: Option<Conversation>,
    /// Credential to use if the provider has several and the conversation names none. `None`: the first.
    pub credential: Option<String>,
}

/// Purpose of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// An agent's turn.
    Turn,
    /// A summary that replaces `messages`: plain text with a heading `## section` for each section. `system` and `messages` tell the model
    /// so. The fields are for a provider that answers without reading them.
    Summary {
        sections: Vec<String>,
        /// Identifiers that the summary has to contain letter by letter.
        pinned: Vec<String>,
    },
    /// Facts about the users who made these requests, as a JSON object. The field is for a provider that answers without reading, as above.
    Facts { requests: Vec<String> },
}

/// Options of an answer. None of them makes a server load its model again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub seed: Option<i64>,
    pub stop: Vec<String>,
    pub think: Option<Think>,
    /// JSON schema that the answer has to match.
    pub format: Option<Value>,
}

/// Amount of thinking before the answer, for models that can think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    Off,
    On,
    Low,
    Medium,
    High,
}

/// Timeouts of this call; missing ones are the provider's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first byte of the answer: queueing, loading the model and reading the prompt happen before it.
    pub first_byte: Option<Duration>,
    /// Between two bytes of the answer.
    pub idle: Option<Duration>,
    /// For the whole call.
    pub total: Option<Duration>,
}
