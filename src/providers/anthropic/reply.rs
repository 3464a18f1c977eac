//! Assembles the events of a stream into a reply, without any IO.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::thinking::SignedThinking;
use crate::{
    providers::{
        Request,
        call_ids::CallIds,
        endpoint::{
            Counts, Delta, Error, Plan, ReplyEnd, StreamedReply, WholeReply, error_of_event,
        },
        thinking::ThinkTags,
    },
    transcript::ToolCall,
};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    text: String,
    thinking: String,
    /// Blocks other than text, in order.
    blocks: Vec<BlockDraft>,
    stop_reason: Option<String>,
    usage: Usage,
    /// True after the last event.
    is_done: bool,
    tags: ThinkTags,
}

/// A block that arrives in fragments.
#[derive(Debug)]
struct BlockDraft {
    index: u64,
    /// Bytes of the answer's text before it.
    text_bytes: usize,
    content: Content,
    has_ended: bool,
}

#[derive(Debug)]
enum Content {
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Encrypted thinking.
    Redacted {
        data: String,
    },
    Call {
        id: String,
        name: String,
        /// JSON as text, in the order of its fragments.
        input: String,
    },
}

/// Token counts of the server. Later events have some of the fields again, with totals.
#[derive(Debug, Default)]
struct Usage {
    /// Tokens of the prompt that were neither read from the cache nor written to it.
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    index: u64,
    message: Option<MessageStart>,
    content_block: Option<BlockStart>,
    delta: Option<BlockDelta>,
    /// Any JSON, because a server that counts wrongly must not cost the answer.
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageStart {
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockStart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

/// A message that is not streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WholeMessage {
    content: Vec<BlockStart>,
    stop_reason: Option<String>,
    usage: Option<Value>,
}

/// Part of a block, or of the message as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockDelta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

impl StreamedReply for Reply {
    fn accept(&mut self, data: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        // Some compatible servers end the stream as OpenAI does.
        if data == b"[DONE]" {
            return Ok(Delta::default());
        }
        let malformed = |source| Error::Malformed { server: plan.server.clone(), source };
        let event: Event = serde_json::from_slice(data).map_err(malformed)?;
        if let Some(error) = event.error.as_ref().filter(|error| !error.is_null()) {
            return Err(error_of_event(plan.server.clone(), error, plan.call()));
        }
        Ok(self.change(|reply| reply.add(event)))
    }

    fn release(&mut self) -> Delta {
        self.change(Self::add_held)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_whole(&self) -> bool {
        self.is_done || self.stop_reason.is_some()
    }

    fn n_chars(&self) -> usize {
        self.text.chars().count()
    }

    fn counts(&self) -> Counts {
        self.usage.counts()
    }
}

impl Reply {
    /// Builds the reply of a message that was not streamed.
    pub(super) fn of_message(message: WholeMessage) -> Self {
        let mut reply = Self::default();
        for (block, index) in message.content.into_iter().zip(0..) {
            reply.begin(index, block);
        }
        reply.blocks.iter_mut().for_each(|block| block.has_ended = true);
        message.usage.iter().for_each(|usage| reply.usage.add(usage));
        reply.stop_reason = message.stop_reason;
        reply.add_held();
        reply.is_done = true;
        reply
    }

    /// Returns the reply to this request without the format of the API. `prefix` makes the digest of the request, for signed thinking.
    pub(super) fn into_whole(
        self,
        request: &Request,
        prefix: impl FnOnce() -> String,
    ) -> WholeReply {
        let end = match self.stop_reason.as_deref() {
            // A paused turn waits for tools of the server, which calls never offer.
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => ReplyEnd::Cut,
            Some("refusal") => ReplyEnd::Filtered,
            _ => ReplyEnd::Finished,
        };
        let has_half_a_call = self.blocks.iter().any(|block| {
            let Content::Call { input, .. } = &block.content else { return false };
            // Arguments that are cut before their first character look like none.
            arguments(input).is_string() || (input.is_empty() && !block.has_ended)
        });
        let counts = self.usage.counts();
        let calls = calls(self.blocks, request, prefix);
        let (text, thinking) = (self.text, self.thinking);
        WholeReply { text, thinking, calls, has_half_a_call, end, counts }
    }

    fn add(&mut self, event: Event) {
        let Event { kind, index, message, content_block, delta, usage, .. } = event;
        let usages = [message.and_then(|message| message.usage), usage];
        usages.iter().flatten().for_each(|usage| self.usage.add(usage));
        match kind.as_str() {
            "content_block_start" => self.begin(index, content_block.unwrap_or_default()),
            "content_block_delta" => self.extend(index, delta.unwrap_or_default()),
            "content_block_stop" => {
                if let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) {
                    block.has_ended = true;
                }
            }
            "message_delta" => {
                if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
                    self.stop_reason = Some(reason);
                    self.add_held();
                }
            }
            "message_stop" => {
                self.is_done = true;
                self.add_held();
            }
            // Signs of life, and events of later versions.
            _ => {}
        }
    }

    fn begin(&mut self, index: u64, block: BlockStart) {
        let text = |text: Option<String>| text.unwrap_or_default();
        let content = match block.kind.as_str() {
            "text" => return self.add_text(&text(block.text)),
            "thinking" => {
                let thinking = text(block.thinking);
                self.thinking.push_str(&thinking);
                Content::Thinking { thinking, signature: text(block.signature) }
            }
            "redacted_thinking" => Content::Redacted { data: text(block.data) },
            "tool_use" => {
                let input = block
                    .input
                    .filter(|input| input.as_object().is_some_and(|object| !object.is_empty()));
                Content::Call {
                    id: text(block.id),
                    name: text(block.name),
                    input: input.map(|input| input.to_string()).unwrap_or_default(),
                }
            }
            _ => return,
        };
        let text_bytes = self.text.len();
        self.blocks.push(BlockDraft { index, text_bytes, content, has_ended: false });
    }

    fn extend(&mut self, index: u64, delta: BlockDelta) {
        if let Some(text) = delta.text {
            return self.add_text(&text);
        }
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else {
            return;
        };
        match &mut block.content {
            Content::Thinking { thinking, signature } => {
                let more = delta.thinking.unwrap_or_default();
                thinking.push_str(&more);
                self.thinking.push_str(&more);
                signature.push_str(&delta.signature.unwrap_or_default());
            }
            Content::Call { input, .. } => input.push_str(&delta.partial_json.unwrap_or_default()),
            Content::Redacted { .. } => {}
        }
    }

    /// Adds text. Compatible servers may begin it with thinking between tags.
    fn add_text(&mut self, text: &str) {
        let split = self.tags.push(text);
        self.thinking.push_str(&split.thinking);
        self.text.push_str(&split.text);
    }

    /// Adds the text that was held because it might have been the beginning of a tag.
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

impl Usage {
    fn add(&mut self, usage: &Value) {
        let fields = [
            (&mut self.input, "input_tokens"),
            (&mut self.output, "output_tokens"),
            (&mut self.cache_read, "cache_read_input_tokens"),
            (&mut self.cache_creation, "cache_creation_input_tokens"),
        ];
        for (field, name) in fields {
            if let Some(value) = usage.get(name).filter(|value| !value.is_null()) {
                *field = value.as_u64();
            }
        }
    }

    fn counts(&self) -> Counts {
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_creation.unwrap_or(0));
        Counts {
            prompt: self.input.map(|input| input.saturating_add(cached)),
            answer: self.output,
            cache_read: self.cache_read,
            cache_creation: self.cache_creation,
        }
    }
}

/// Returns the calls, each with the signed thinking before it.
fn calls(
    blocks: Vec<BlockDraft>,
    request: &Request,
    prefix: impl FnOnce() -> String,
) -> Vec<ToolCall> {
    let is_signed = |block: &BlockDraft| match &block.content {
        Content::Thinking { signature, .. } => !signature.is_empty(),
        Content::Redacted { .. } => true,
        Content::Call { .. } => false,
    };
    let is_call = |block: &BlockDraft| matches!(block.content, Content::Call { .. });
    let keeps_thinking = blocks.iter().any(is_signed) && blocks.iter().any(is_call);
    let prefix = keeps_thinking.then(prefix);
    let mut ids = CallIds::of(request);
    let (mut calls, mut signed) = (Vec::new(), Vec::new());
    for BlockDraft { text_bytes, content, .. } in blocks {
        match content {
            Content::Thinking { thinking, signature } if !signature.is_empty() => {
                let block =
                    json!({ "type": "thinking", "thinking": thinking, "signature": signature });
                signed.push((block, text_bytes));
            }
            Content::Redacted { data } => {
                signed.push((json!({ "type": "redacted_thinking", "data": data }), text_bytes));
            }
            // Without a signature it cannot go back.
            Content::Thinking { .. } => {}
            Content::Call { id, name, input } => {
                let blocks = std::mem::take(&mut signed);
                let thinking = prefix
                    .as_ref()
                    .and_then(|prefix| SignedThinking::new(prefix, text_bytes, blocks).to_value());
                let id = ids.unique(id, calls.len());
                calls.push(ToolCall { id, name, arguments: arguments(&input), thinking });
            }
        }
    }
    calls
}

/// Returns arguments as JSON. Text that is not JSON stays text: the tool refuses it, and the model reads why.
fn arguments(input: &str) -> Value {
    match input.trim() {
        "" => Value::Object(Map::new()),
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        providers::{
            CallTexts,
            anthropic::{messages::Prompt, sample::request},
        },
        transcript::{Message, Role},
    };

    fn reply(blocks: &[Value]) -> Reply {
        let mut reply = Reply::default();
        for (index, block) in blocks.iter().enumerate() {
            let start =
                json!({ "type": "content_block_start", "index": index, "content_block": block });
            reply.add(serde_json::from_value(start).unwrap());
        }
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
        reply.add(serde_json::from_value(end).unwrap());
        reply
    }

    #[test]
    fn blocks_go_back_in_the_order_in_which_they_came() {
        let blocks = [
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "s1" }),
            json!({ "type": "text", "text": "I look." }),
            json!({ "type": "redacted_thinking", "data": "d" }),
            json!({ "type": "tool_use", "id": "c1", "name": "look", "input": { "n": 1 } }),
            json!({ "type": "thinking", "thinking": "", "signature": "s2" }),
            json!({ "type": "text", "text": "And more." }),
            json!({ "type": "tool_use", "id": "c2", "name": "look", "input": {} }),
        ];
        let mut request = request(vec![Message::new(Role::User, "Go.")]);
        let prefix = || Prompt::of("m", &CallTexts::of(&request)).digest("m");
        let whole = reply(&blocks).into_whole(&request, prefix);
        assert_eq!((whole.text.as_str(), whole.thinking.as_str()), ("I look.And more.", "Hm."));
        let answer =
            Message { tool_calls: whole.calls, ..Message::new(Role::Assistant, whole.text) };
        request.messages.push(Arc::new(answer));
        let sent = Prompt::of("m", &CallTexts::of(&request));
        let sent = serde_json::to_value(&sent.messages[1]).unwrap();
        assert_eq!(sent["content"], json!(blocks));
    }

    #[test]
    fn a_whole_message_is_the_same_reply_as_its_stream() {
        let blocks = [
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "s1" }),
            json!({ "type": "text", "text": "I look." }),
            json!({ "type": "tool_use", "id": "c1", "name": "look", "input": { "n": 1 } }),
        ];
        let message =
            json!({ "content": blocks, "stop_reason": "tool_use", "usage": { "input_tokens": 3 } });
        let request = request(vec![Message::new(Role::User, "Go.")]);
        let prefix = || Prompt::of("m", &CallTexts::of(&request)).digest("m");
        let whole = Reply::of_message(serde_json::from_value(message).unwrap());
        assert_eq!(whole.usage.counts().prompt, Some(3));
        let whole = whole.into_whole(&request, prefix);
        let streamed = reply(&blocks).into_whole(&request, prefix);
        assert_eq!((&whole.text, &whole.thinking), (&streamed.text, &streamed.thinking));
        assert_eq!(whole.calls, streamed.calls);
        assert!(whole.calls[0].thinking.is_some() && !whole.has_half_a_call);
    }

    #[test]
    fn a_call_that_is_cut_before_its_arguments_is_half_a_call() {
        let call = json!({ "type": "tool_use", "id": "c1", "name": "look", "input": {} });
        let start = json!({ "type": "content_block_start", "index": 0, "content_block": call });
        let stop = json!({ "type": "content_block_stop", "index": 0 });
        let is_half = |events: &[&Value]| {
            let mut reply = Reply::default();
            events.iter().for_each(|it| reply.add(serde_json::from_value((*it).clone()).unwrap()));
            let request = request(vec![Message::new(Role::User, "Go.")]);
            reply.into_whole(&request, String::new).has_half_a_call
        };
        assert!(is_half(&[&start]));
        assert!(!is_half(&[&start, &stop]), "a call without arguments");
    }

    #[test]
    fn later_counts_replace_earlier_ones() {
        let mut usage = Usage::default();
        usage.add(&json!({ "input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 90 }));
        usage.add(&json!({ "output_tokens": 30, "cache_read_input_tokens": null }));
        let Counts { prompt, answer, cache_read, cache_creation } = usage.counts();
        assert_eq!((prompt, answer), (Some(95), Some(30)));
        assert_eq!((cache_read, cache_creation), (Some(90), None));
    }
}
