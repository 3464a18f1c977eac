//! The APIs of the scripted servers, as far as the providers use them.

use serde_json::{Value, json};
use uuid::Uuid;

use super::servers::Failure;

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Messages API, as the Claude Code CLI calls it.
    MessagesOfCli,
    Ollama,
    ChatCompletions,
    Messages,
}

const WINDOW_TOKENS: u32 = 32_768;
const N_ANSWER_TOKENS: usize = 20;
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

impl Dialect {
    /// Returns the request of a call.
    pub(super) fn call(self) -> &'static str {
        match self {
            Self::MessagesOfCli | Self::Messages => "POST /v1/messages",
            Self::Ollama => "POST /api/chat",
            Self::ChatCompletions => "POST /v1/chat/completions",
        }
    }

    pub(super) fn failure(self) -> Failure {
        match self {
            Self::MessagesOfCli => Failure::Status,
            Self::Ollama => Failure::HangsUp,
            Self::ChatCompletions => Failure::Html,
            Self::Messages => Failure::BreaksOff,
        }
    }

    /// Answers a request that is not a call: facts about the server and its models.
    pub(super) fn answer_side_request(self, request: &str, model: &str) -> (u16, Value) {
        match (self, request) {
            (Self::Ollama, "GET /api/version") => (200, json!({ "version": "0.33.1" })),
            (Self::Ollama, "POST /api/show") => {
                let info = json!({ "general.architecture": "qwen3", "qwen3.context_length": WINDOW_TOKENS });
                (200, json!({ "model_info": info, "capabilities": ["completion", "tools"] }))
            }
            (Self::ChatCompletions, "GET /v1/models") => {
                let model =
                    json!({ "id": model, "object": "model", "max_model_len": WINDOW_TOKENS });
                (200, json!({ "object": "list", "data": [model] }))
            }
            (Self::Messages, "GET /v1/models") => {
                let model =
                    json!({ "type": "model", "id": model, "max_input_tokens": WINDOW_TOKENS });
                (200, json!({ "data": [model], "has_more": false }))
            }
            _ => (404, json!({ "error": { "type": "not_found_error", "message": "not found" } })),
        }
    }

    /// Returns the content type and the body of an answer.
    pub(super) fn reply(self, call: &Value, text: &str, n_tokens: usize) -> (&'static str, String) {
        let model = &call["model"];
        match self {
            Self::Ollama => (JSON, ollama_lines(model, text, n_tokens)),
            Self::ChatCompletions => (EVENTS, completion(model, text, n_tokens)),
            Self::MessagesOfCli | Self::Messages if call["stream"] == true => {
                (EVENTS, message_events(model, text, n_tokens))
            }
            Self::MessagesOfCli | Self::Messages => {
                let mut message = message(model, n_tokens);
                message["content"] = json!([{ "type": "text", "text": text }]);
                message["stop_reason"] = json!("end_turn");
                (JSON, message.to_string())
            }
        }
    }

    /// Returns the first part of a stream, as of a server that stops in the middle of an answer.
    pub(super) fn beginning_of_reply(self) -> String {
        let start = json!({ "type": "message_start", "message": message(&Value::Null, 1) });
        [start, block_start(), text_delta("My log")].iter().map(message_event).collect()
    }
}

fn ollama_lines(model: &Value, text: &str, n_tokens: usize) -> String {
    let message = |content: &str| json!({ "role": "assistant", "content": content });
    let piece = json!({ "model": model, "message": message(text), "done": false });
    let last = json!({
        "model": model, "message": message(""), "done": true, "done_reason": "stop",
        "prompt_eval_count": n_tokens, "eval_count": N_ANSWER_TOKENS,
    });
    format!("{piece}\n{last}\n")
}

fn completion(model: &Value, text: &str, n_tokens: usize) -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
    let usage = json!({ "prompt_tokens": n_tokens, "completion_tokens": N_ANSWER_TOKENS });
    [
        chunk(choice(json!({ "role": "assistant", "content": text }), Value::Null), Value::Null),
        chunk(choice(json!({}), json!("stop")), Value::Null),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

fn message_events(model: &Value, text: &str, n_tokens: usize) -> String {
    let end = json!({ "stop_reason": "end_turn", "stop_sequence": null });
    let usage = json!({ "output_tokens": N_ANSWER_TOKENS });
    let events = [
        json!({ "type": "message_start", "message": message(model, n_tokens) }),
        block_start(),
        text_delta(text),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": end, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    events.iter().map(message_event).collect()
}

fn message(model: &Value, n_tokens: usize) -> Value {
    json!({
        "id": format!("msg_{}", Uuid::new_v4().simple()), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": n_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 },
    })
}

fn block_start() -> Value {
    json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } })
}

fn text_delta(text: &str) -> Value {
    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
}

fn message_event(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}
