//! Assembles the events of a stream into a reply, without any IO.

use serde::Deserialize;
use serde_json::Value;

use super::tool_calls::{CallDelta, CallDrafts};
use crate::providers::{
    Request,
    endpoint::{Counts, Delta, Error, Plan, ReplyEnd, StreamedReply, WholeReply, error_of_event},
    thinking::ThinkTags,
};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    text: String,
    thinking: String,
    calls: CallDrafts,
    finish_reason: Option<String>,
    counts: Counts,
    /// True after the last event.
    is_done: bool,
    tags: ThinkTags,
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

impl StreamedReply for Reply {
    fn accept(&mut self, data: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        if data == DONE {
            self.is_done = true;
            return Ok(self.release());
        }
        self.accept_chunk(data, plan)
    }

    fn release(&mut self) -> Delta {
        self.change(Self::add_held)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_whole(&self) -> bool {
        self.is_done || self.finish_reason.is_some()
    }

    fn n_chars(&self) -> usize {
        self.text.chars().count()
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl Reply {
    /// Returns the reply to this request without the format of the API.
    pub(super) fn into_whole(self, request: &Request) -> WholeReply {
        let end = match self.finish_reason.as_deref() {
            Some("length") => ReplyEnd::Cut,
            Some("content_filter") => ReplyEnd::Filtered,
            Some("error") => ReplyEnd::Failed,
            _ => ReplyEnd::Finished,
        };
        WholeReply {
            has_half_a_call: self.calls.has_half_a_call(),
            text: self.text,
            thinking: self.thinking,
            calls: self.calls.into_calls(request),
            end,
            counts: self.counts,
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
            self.counts = counts_of(usage);
        }
        Ok(self.change(|reply| {
            let Some(choice) = choice else { return };
            if let Some(part) = choice.delta.or(choice.message) {
                reply.add(part);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                reply.finish_reason = Some(reason);
                reply.add_held();
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
    fn add_held(&mut self) {
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

fn counts_of(usage: &Value) -> Counts {
    let number = |places: &[&str]| places.iter().find_map(|at| usage.pointer(at)?.as_u64());
    Counts {
        prompt: number(&["/prompt_tokens"]),
        answer: number(&["/completion_tokens"]),
        // The second is DeepSeek's.
        cache_read: number(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]),
        // OpenRouter, for models that bill it.
        cache_creation: number(&["/prompt_tokens_details/cache_write_tokens"]),
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
