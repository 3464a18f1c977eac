//! What a provider is asked.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Conversation;
use crate::transcript::{Message, ToolSpec};

/// One call: everything that the model is to see, and what it may cost in tokens and time.
#[derive(Debug, Clone)]
pub struct Request {
    /// The turn that this call belongs to. Another attempt at the same turn carries the same name.
    pub turn: String,
    pub purpose: Purpose,
    pub model: String,
    /// The leading system message. Fresh on every call, so it is not part of `messages`.
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    /// What the model may call. Carrying it out, and asking again with the results, is the caller's. For providers that
    /// are sent the whole conversation; one that keeps it itself has its tools from [`Grants`](super::Grants).
    pub tools: Vec<Arc<ToolSpec>>,
    /// What the caller planned with: prompt and answer together. A provider whose model has less says so
    /// in [`Outcome::window_tokens`](super::Outcome::window_tokens).
    pub window_tokens: u32,
    /// The part of the window that is left for the answer.
    pub reserve_tokens: u32,
    /// What the caller expects the prompt to count. Providers that can lose a part of the prompt without a word
    /// compare it with what they are told; without it they cannot notice.
    pub estimated_prompt_tokens: Option<u32>,
    pub options: Options,
    pub timeouts: Timeouts,
    /// For providers that keep the conversation themselves; the others are sent all of it and pass this over. Without it
    /// such a provider answers in a conversation that it forgets at once.
    pub conversation: Option<Conversation>,
    /// The login to ask on, where the provider has several and the conversation has none. `None`: the first.
    pub login: Option<String>,
}

/// Why the call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// An agent's turn.
    Turn,
    /// A summary that is to stand in for what `messages` hold: plain text with a heading `## section` for each section.
    /// `system` and `messages` say so to the model; this is for whoever answers without reading them.
    Summary {
        sections: Vec<String>,
        /// Identifiers that have to survive, letter by letter.
        pinned: Vec<String>,
    },
    /// Facts about whoever has said these, as a JSON object. For whoever answers without reading, as above.
    Facts { requests: Vec<String> },
}

/// How to answer. Nothing in here makes a server load its model again.
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

/// Whether a model that can think before it answers does so, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    Off,
    On,
    Low,
    Medium,
    High,
}

/// Patience of this one call; what is not given is the provider's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first byte of the answer: queueing, loading the model and reading the prompt happen before it.
    pub first_byte: Option<Duration>,
    /// Between two bytes of the answer.
    pub idle: Option<Duration>,
    /// For all of it.
    pub total: Option<Duration>,
}
