//! The Messages API: server-sent events, and a prompt cache.

use std::collections::HashSet;

use dalsegno::providers::{
    Provider, anthropic,
    endpoint::{Config, Endpoint},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Answer, Dialect, SentMessage, openai};

pub struct Anthropic;

/// The request that counts a prompt.
pub const COUNT: &str = "POST /v1/messages/count_tokens";
/// Fields that such a request may have.
const COUNTED_FIELDS: [&str; 7] =
    ["model", "system", "messages", "tools", "tool_choice", "thinking", "output_config"];
/// Number of blocks before a mark in which the server looks for a cached prefix.
const LOOKBACK_BLOCKS: usize = 20;
/// Minimum length of a cached prefix; some models have a longer one.
const MIN_CACHED_TOKENS: u64 = 1024;
/// Fields that the cached prefixes of messages depend on, besides their blocks.
const MESSAGE_FIELDS: [&str; 3] = ["tool_choice", "thinking", "output_config"];
/// Maximum number of marks in a request.
const MAX_MARKS: usize = 4;

/// A block of a prompt, without its mark.
struct Block {
    /// Digest of the prompt up to its end.
    digest: Vec<u8>,
    /// Tokens of the prompt up to its end.
    tokens: u64,
    is_marked: bool,
}

/// Returns one event of a stream.
pub fn event(data: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()).into_bytes()
}

fn delta(index: usize, delta: &Value) -> Vec<u8> {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

/// Returns the events of a block.
fn block(index: usize, start: &Value, deltas: impl IntoIterator<Item = Value>) -> Vec<Vec<u8>> {
    let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
    let stop = json!({ "type": "content_block_stop", "index": index });
    let deltas = deltas.into_iter().map(|it| delta(index, &it));
    [event(&start)].into_iter().chain(deltas).chain([event(&stop)]).collect()
}

/// Returns the fields of counts, in which the prompt is without its cached tokens.
fn usage(counts: &Value) -> Value {
    let cached = |name: &str| counts[name].as_u64().unwrap_or(0);
    let input = match counts["prompt"].as_u64() {
        Some(prompt) => json!(prompt.saturating_sub(cached("cached") + cached("written"))),
        None => counts["prompt"].clone(),
    };
    json!({
        "input_tokens": input,
        "output_tokens": counts["answer"],
        "cache_read_input_tokens": counts["cached"],
        "cache_creation_input_tokens": counts["written"],
    })
}

/// Returns the blocks of a prompt in the order in which the server caches them.
fn blocks(body: &Value) -> Vec<Block> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let named = |name: &str, blocks: Vec<Value>| -> Vec<(String, Value)> {
        blocks.into_iter().map(|block| (name.to_owned(), block)).collect()
    };
    let mut parts = named("tool", list(&body["tools"]));
    parts.extend(named("system", list(&body["system"])));
    let n_before_messages = parts.len();
    for message in list(&body["messages"]) {
        parts.extend(named(message["role"].as_str().unwrap(), list(&message["content"])));
    }
    let (mut hasher, mut tokens) = (Sha256::new(), 0);
    // Each model has a cache of its own.
    hasher.update(body["model"].to_string());
    let blocks = parts.into_iter().enumerate().map(|(at, (role, mut block))| {
        if at == n_before_messages {
            for field in MESSAGE_FIELDS {
                hasher.update(body[field].to_string());
            }
        }
        let mark = block.as_object_mut().unwrap().remove("cache_control");
        let text = block.to_string();
        hasher.update(format!("{role}{}:{text}", text.len()));
        tokens += u64::try_from(text.len()).unwrap() / 4 + 1;
        Block { digest: hasher.clone().finalize().to_vec(), tokens, is_marked: mark.is_some() }
    });
    blocks.collect()
}

/// Replays all calls on an empty cache that keeps prefixes of this length and more, and returns the counts of the last.
pub fn count_with_cache(calls: &[Value], min_tokens: u64) -> Value {
    let mut cached: HashSet<Vec<u8>> = HashSet::new();
    let mut counts = Value::Null;
    for body in calls {
        let blocks = blocks(body);
        let marks: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].is_marked).collect();
        assert!(marks.len() <= MAX_MARKS, "{} marks", marks.len());
        let read = marks.iter().rev().find_map(|mark| {
            let first = (mark + 1).saturating_sub(LOOKBACK_BLOCKS);
            (first..=*mark).rev().find(|at| cached.contains(&blocks[*at].digest))
        });
        let read = read.map_or(0, |at| blocks[at].tokens);
        let marked = marks.iter().map(|at| &blocks[*at]);
        let cacheable: Vec<_> = marked.filter(|block| block.tokens >= min_tokens).collect();
        let written = cacheable.last().map_or(0, |block| block.tokens.saturating_sub(read));
        cached.extend(cacheable.into_iter().map(|block| block.digest.clone()));
        let prompt = blocks.last().map_or(0, |block| block.tokens);
        counts = json!({ "prompt": prompt, "cached": read, "written": written });
    }
    counts
}

impl Dialect for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn codes(&self) -> &'static str {
        "endpoint"
    }

    fn chat(&self) -> &'static str {
        "POST /v1/messages"
    }

    fn description(&self) -> &'static str {
        "GET /v1/models?limit=1000"
    }

    fn provider(&self, base_url: &str) -> Box<dyn Provider> {
        let key = |name: &str| (name == "LOCAL_KEY").then(|| "sk-secret-of-test".to_owned());
        let config = openai::config(&format!("{base_url}/v1"));
        let kind = serde_json::from_value(json!("anthropic")).unwrap();
        let endpoint = Endpoint::new(Config { kind, ..config }, &key).unwrap();
        Box::new(anthropic::Anthropic::new(endpoint))
    }

    fn side(&self, request: &str, sent: &[u8]) -> (u16, Value) {
        if request == COUNT {
            let body: Value = serde_json::from_slice(sent).unwrap();
            for (key, _) in body.as_object().unwrap() {
                assert!(COUNTED_FIELDS.contains(&key.as_str()), "{key} is not part of a prompt");
            }
            let tokens = blocks(&body).last().map(|block| block.tokens);
            return (200, json!({ "input_tokens": tokens }));
        }
        if request != "GET /v1/models?limit=1000" {
            let error = json!({ "type": "not_found_error", "message": "Not Found" });
            return (404, json!({ "type": "error", "error": error }));
        }
        let supported = json!({ "supported": true });
        let types = json!({ "adaptive": supported, "enabled": supported, "disabled": supported });
        let model = json!({
            "type": "model", "id": "qwen3:8b", "display_name": "A model", "max_input_tokens": 1_000_000,
            "max_tokens": 64_000,
            "capabilities": { "thinking": { "supported": true, "types": types }, "effort": supported },
        });
        (200, json!({ "data": [model], "has_more": false }))
    }

    fn events(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut start = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "qwen3:8b", "content": [],
            "stop_reason": null,
        });
        let usage = answer.counts.is_object().then(|| usage(&answer.counts));
        if let Some(usage) = &usage {
            start["usage"] = usage.clone();
            // The first event counts the first token only.
            if usage["output_tokens"].is_number() {
                start["usage"]["output_tokens"] = json!(1);
            }
        }
        let mut events = vec![
            event(&json!({ "type": "message_start", "message": start })),
            event(&json!({ "type": "ping" })),
        ];
        let mut index = 0;
        if !answer.thinking.is_empty() {
            let pieces = answer.thinking.iter();
            let pieces = pieces.map(|piece| json!({ "type": "thinking_delta", "thinking": piece }));
            let signed = json!({ "type": "signature_delta", "signature": "c2lnbmVk" });
            let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
            events.extend(block(index, &start, pieces.chain([signed])));
            index += 1;
        }
        if !answer.pieces.is_empty() {
            let pieces = answer.pieces.iter();
            let pieces = pieces.map(|piece| json!({ "type": "text_delta", "text": piece }));
            events.extend(block(index, &json!({ "type": "text", "text": "" }), pieces));
            index += 1;
        }
        for call in &answer.calls {
            let text: Vec<char> = call.arguments.to_string().chars().collect();
            let fragments = text.chunks(7).map(|fragment| {
                let fragment: String = fragment.iter().collect();
                json!({ "type": "input_json_delta", "partial_json": fragment })
            });
            let start =
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
            events.extend(block(index, &start, fragments));
            index += 1;
        }
        let reason = match (answer.is_cut, answer.calls.is_empty()) {
            (true, _) => "max_tokens",
            (false, true) => "end_turn",
            (false, false) => "tool_use",
        };
        let mut last = json!({
            "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        });
        if let Some(usage) = &usage {
            last["usage"] = json!({ "output_tokens": usage["output_tokens"] });
        }
        events.push(event(&last));
        events.push(event(&json!({ "type": "message_stop" })));
        events
    }

    fn error_event(&self, message: &str) -> Vec<u8> {
        let error = json!({ "type": "api_error", "message": message });
        event(&json!({ "type": "error", "error": error }))
    }

    fn malformed_event(&self, data: &[u8]) -> Vec<u8> {
        [b"data: ", data, b"\n\n"].concat()
    }

    fn refusal(&self, message: &str) -> String {
        let error = json!({ "type": "invalid_request_error", "message": message });
        json!({ "type": "error", "error": error, "request_id": "req_1" }).to_string()
    }

    fn filter(&self, events: &str) -> String {
        events.replace("\"end_turn\"", "\"refusal\"")
    }

    fn overflows(&self) -> Vec<(u16, String)> {
        let reserve = "input length and `max_tokens` exceed context limit: 4000 + 512 > 4096, decrease input length or `max_tokens` and try again";
        let large =
            json!({ "type": "request_too_large", "message": "Request exceeds the maximum size" });
        [
            (400, self.refusal("prompt is too long: 5000 tokens > 4096 maximum")),
            (400, self.refusal(reserve)),
            (413, json!({ "type": "error", "error": large }).to_string()),
        ]
        .into()
    }

    fn missing_model(&self) -> (u16, String) {
        let error = json!({ "type": "not_found_error", "message": "model: qwen3:8b" });
        (404, json!({ "type": "error", "error": error }).to_string())
    }

    fn no_tools(&self) -> (u16, String) {
        (400, self.refusal("this model does not support tools"))
    }

    fn caches(&self, mut answer: Answer, cached: u64) -> Answer {
        answer.counts["cached"] = json!(cached);
        answer
    }

    fn count(&self, calls: &[Value]) -> Value {
        count_with_cache(calls, MIN_CACHED_TOKENS)
    }

    fn key_header(&self) -> &'static str {
        "x-api-key: sk-secret-of-test"
    }

    fn messages(&self, body: &Value) -> Vec<SentMessage> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |blocks: &Value| {
            let blocks = blocks.as_array().into_iter().flatten();
            let texts = blocks.filter(|block| block["type"] == "text").map(|it| text(&it["text"]));
            texts.collect::<Vec<_>>().join("\n\n")
        };
        let message = |role: &str, content: String| SentMessage {
            role: role.to_owned(),
            content,
            calls: Vec::new(),
            result_of: None,
        };
        let mut sent = Vec::new();
        if body.get("system").is_some() {
            sent.push(message("system", texts(&body["system"])));
        }
        let mut last_role = String::new();
        for wire in body["messages"].as_array().unwrap() {
            let role = text(&wire["role"]);
            assert_ne!(role, last_role, "roles alternate");
            let blocks = wire["content"].as_array().unwrap();
            let results = blocks.iter().filter(|block| block["type"] == "tool_result");
            sent.extend(results.map(|block| SentMessage {
                result_of: Some(text(&block["tool_use_id"])),
                ..message("tool", text(&block["content"]))
            }));
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            let calls = calls.map(|it| (text(&it["id"]), text(&it["name"]), it["input"].clone()));
            let said =
                SentMessage { calls: calls.collect(), ..message(&role, texts(&wire["content"])) };
            if !said.content.is_empty() || !said.calls.is_empty() {
                sent.push(said);
            }
            last_role = role;
        }
        sent
    }

    fn options(&self, body: &Value) -> Value {
        json!({
            "temperature": body["temperature"],
            "top_p": body["top_p"],
            "stop": body["stop_sequences"],
            "schema": body["output_config"]["format"]["schema"],
            "limit": body["max_tokens"],
        })
    }

    fn lacks(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "options_of_sampling_are_sent",
                "the API has no seed, and thinking models take no temperature",
            ),
            ("more_cached_than_read_tokens_are_unknown", "cached tokens are counted apart"),
            ("an_answer_that_is_not_streamed_is_read", "the server always streams"),
        ]
    }
}
