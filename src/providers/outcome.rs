//! Outcome of a call.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Call, ConversationUpdate, ModelSpend, OutputFiles};
use crate::transcript::Message;

/// A whole answer. There are no partial outcomes: a call that breaks off is an error.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Message of the assistant, without its thinking.
    pub message: Message,
    /// Thoughts of the model before it answered. For people to read; they never go back to a model.
    pub thinking: Option<String>,
    pub stop: StopReason,
    pub usage: Usage,
    /// Usage by model and with its price, if the provider knows it. It includes calls that only the provider sees, for instance retries.
    pub spent: Vec<ModelSpend>,
    /// Actual window of the call, if the provider knows it. The next turn is planned with it.
    pub window_tokens: Option<u32>,
    /// Id by which the ledger deduplicates, if the provider names its answers.
    pub provider_message_id: Option<String>,
    pub durations: Durations,
    /// Set if the request had a conversation and the provider keeps it itself.
    pub conversation: Option<Box<ConversationUpdate>>,
    /// Files that the agent has written in this turn.
    pub files: OutputFiles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model has finished its answer.
    End,
    /// The reserve or the window was used up; the text breaks off.
    Length,
    /// The model waits for the results of its tool calls.
    ToolCalls,
}

/// Tokens as the provider counted them. `None` is "unknown", which is not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that did not come out of a cache.
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// Prompt tokens that came out of a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens that were written to a cache.
    pub cache_creation: Option<u64>,
}

/// Durations of the parts of a call; `None` if the provider does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durations {
    /// From the first byte sent to the last one read, by this process's clock.
    pub total: Duration,
    /// Until the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Loading the model.
    pub load: Option<Duration>,
    /// Reading the prompt.
    pub prompt: Option<Duration>,
    /// Writing the answer.
    pub answer: Option<Duration>,
}

impl Outcome {
    /// Returns the tokens of the turn's first prompt, which is the one that the caller has assembled.
    pub fn prompt_tokens(&self) -> Option<u64> {
        match self.own_calls().next() {
            Some(first) => first.usage.prompt(),
            None => self.usage.prompt(),
        }
    }

    /// Returns the tokens that the turn's last call occupied of its window.
    pub fn context_tokens(&self) -> Option<u64> {
        match self.own_calls().last() {
            Some(last) => last.usage.context(),
            None => self.usage.context(),
        }
    }

    /// Returns the calls that the conversation's own window had to hold.
    fn own_calls(&self) -> impl Iterator<Item = &Call> {
        let calls = self.conversation.iter().flat_map(|continued| &continued.calls);
        calls.filter(|call| !call.is_subagent)
    }
}

impl Usage {
    /// Returns the tokens of the whole prompt, or `None` if the provider did not count it.
    pub fn prompt(&self) -> Option<u64> {
        let cached = self.cache_read.unwrap_or(0) + self.cache_creation.unwrap_or(0);
        self.input.map(|input| input + cached)
    }

    /// Adds the counts of another call. A count is unknown only if both are.
    pub fn plus(self, other: Self) -> Self {
        let add =
            |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cache_read: add(self.cache_read, other.cache_read),
            cache_creation: add(self.cache_creation, other.cache_creation),
        }
    }

    /// Returns the tokens that the call occupied of its window: prompt and answer.
    pub fn context(&self) -> Option<u64> {
        Some(self.prompt()? + self.output?)
    }
}
