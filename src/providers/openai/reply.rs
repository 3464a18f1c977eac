//! Assembles the events of a stream into a reply, without any IO.
//!
//! A server may also answer with one JSON object instead of a stream: with an error, or because it does not stream.

use serde::Deserialize;
use serde_json::Value;

use super::{
    tool_calls::{CallDelta, CallDrafts},
    verdict::Plan,
};
use crate::providers::{
    endpoint::{Error, error_of_event},
    http::event_data,
    thinking::ThinkTags,
};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: CallDrafts,
    pub(super) finish_reason: Option<String>,
    pub(super) counts: Counts,
    /// True after the last event.
    is_done: bool,
    /// The lines of a body that is not a stream.
    body: Option<Vec<u8>>,
    tags: ThinkTags,
}

/// Addition of one line, for people who watch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) text: String,
    pub(super) began_thinking: bool,
    pub(super) began_answering: bool,
}

/// Tokens as the server counts them. Invalid numbers are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) prompt: Option<u64>,
    pub(super) answer: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_creation: Option<u64>,
}

/// An event of the stream, or a whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    error: Option<Value>,
    choices: Option<Vec<Choice>>,
    /// Any JSON, because a server that counts wrongly must not cost the answer.
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    index: u64,
    delta: Option<Part>,
    /// In place of `delta`, in an answer that is not streamed.
    message: Option<Part>,
    finish_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    content: Option<Value>,
    /// DeepSeek, vLLM, llama.cpp, LM Studio.
    reasoning_content: Option<String>,
    /// OpenRouter, newer vLLM, gpt-oss.
    reasoning: Option<String>,
    /// Why the model does not answer.
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

/// Data of the last event.
const DONE: &[u8] = b"[DONE]";

impl Reply {
    /// Returns true if nothing can follow.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns true if the answer is whole. Token counts may follow.
    pub(super) fn is_whole(&self) -> bool {
        self.is_done || self.finish_reason.is_some()
    }

    pub(super) fn accept(&mut self, line: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        if let Some(body) = &mut self.body {
            body.push(b'\n');
            body.extend_from_slice(line);
            return Ok(Delta::default());
        }
        match event_data(line) {
            Some(DONE) => {
                self.is_done = true;
                Ok(self.change(Self::release))
            }
            Some([]) => Ok(Delta::default()),
            Some(data) => self.accept_chunk(data, plan),
            None => {
                if matches!(line.first(), Some(b'{' | b'[' | b'<')) {
                    self.body = Some(line.to_vec());
                }
                Ok(Delta::default())
            }
        }
    }

    /// Ends the reply. The rest of the stream may be a last line without its line end, but not half a line.
    pub(super) fn end_of_stream(&mut self, rest: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        let ended_early = |reply: &Self| Error::EndedEarly {
            server: plan.server.clone(),
            n_chars: reply.text.chars().count(),
        };
        let last = match self.accept(rest, plan) {
            Err(Error::Malformed { .. }) if !self.is_whole() => return Err(ended_early(self)),
            Err(Error::Malformed { .. }) => Delta::default(),
            last => last?,
        };
        if let Some(body) = self.body.take() {
            if body.starts_with(b"<") {
                return Err(Error::NotTheApi { server: plan.server.clone(), status: 200 });
            }
            return self.accept_chunk(&body, plan).and_then(|delta| match self.is_whole() {
                true => Ok(delta),
                false => Err(ended_early(self)),
            });
        }
        match self.is_whole() {
            true => Ok(Delta { text: last.text + &self.change(Self::release).text, ..last }),
            false => Err(ended_early(self)),
        }
    }

    fn accept_chunk(&mut self, data: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        let chunk: Chunk = serde_json::from_slice(data)
            .map_err(|source| Error::Malformed { server: plan.server.clone(), source })?;
        let choice = chunk.choices.into_iter().flatten().find(|choice| choice.index == 0);
        let error = chunk.error.as_ref().or(choice.as_ref().and_then(|it| it.error.as_ref()));
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return Err(error_of_event(plan.server.clone(), error, plan.call()));
        }
        if let Some(usage) = chunk.usage.as_ref().filter(|usage| usage.is_object()) {
            self.counts = Counts::of(usage);
        }
        Ok(self.change(|reply| {
            let Some(choice) = choice else { return };
            if let Some(part) = choice.delta.or(choice.message) {
                reply.add(part);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                reply.finish_reason = Some(reason);
                reply.release();
            }
        }))
    }

    fn add(&mut self, part: Part) {
        let thinking = part.reasoning_content.or(part.reasoning);
        self.thinking.push_str(thinking.as_deref().unwrap_or_default());
        let content = part.content.as_ref().map(text_of).unwrap_or_default();
        let split = self.tags.push(&content);
        self.thinking.push_str(&split.thinking);
        self.text.push_str(&split.text);
        self.text.push_str(part.refusal.as_deref().unwrap_or_default());
        for call in part.tool_calls.into_iter().flatten() {
            self.calls.add(call);
        }
    }

    /// Adds the content that was held because it might have been the beginning of a tag.
    fn release(&mut self) {
        let last = self.tags.finish();
        self.thinking.push_str(&last.thinking);
        self.text.push_str(&last.text);
    }

    /// Makes a change, and returns what it added.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> Delta {
        let (had_thinking, n_bytes) = (!self.thinking.is_empty(), self.text.len());
        change(self);
        Delta {
            text: self.text[n_bytes..].to_owned(),
            began_thinking: !had_thinking && !self.thinking.is_empty(),
            began_answering: n_bytes == 0 && !self.text.is_empty(),
        }
    }
}

impl Counts {
    fn of(usage: &Value) -> Self {
        let number = |places: &[&str]| places.iter().find_map(|at| usage.pointer(at)?.as_u64());
        Self {
            prompt: number(&["/prompt_tokens"]),
            answer: number(&["/completion_tokens"]),
            // The second is DeepSeek's.
            cache_read: number(&[
                "/prompt_tokens_details/cached_tokens",
                "/prompt_cache_hit_tokens",
            ]),
            // OpenRouter, for models that bill it.
            cache_creation: number(&["/prompt_tokens_details/cache_write_tokens"]),
        }
    }
}

/// Returns the text of a content, which some servers send in parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}
