//! Chat completions: server-sent events.

use dalsegno::providers::{
    Provider,
    endpoint::{Config, Endpoint},
    openai,
};
use serde_json::{Value, json};

use super::{Answer, Dialect, SentMessage};

pub struct OpenAi;

/// Returns the section of an endpoint `local` with a window of 4096 tokens.
pub fn config(base_url: &str) -> Config {
    let config: Config = serde_json::from_value(json!({
        "kind": "openai",
        "base_url": base_url,
        "dialect": "auto",
        "credential_variable": "LOCAL_KEY",
        "credential_file": "",
        "window_tokens": 4096,
        "models": [],
        "prompt_cache_secs": 0,
        "ttl_days": 7,
        "connect_timeout_secs": 60,
        "first_byte_timeout_secs": 600,
        "idle_timeout_secs": 600,
        "total_timeout_secs": 900,
        "breaker_failures": 5,
        "breaker_open_secs": 600,
    }))
    .unwrap();
    Config { name: "local".to_owned(), ..config }
}

/// Returns one event of a stream.
pub fn event(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

fn choice(delta: &Value) -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "qwen3:8b",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": null }], "usage": null })
}

impl Dialect for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn codes(&self) -> &'static str {
        "endpoint"
    }

    fn chat(&self) -> &'static str {
        "POST /v1/chat/completions"
    }

    fn description(&self) -> &'static str {
        "GET /v1/models"
    }

    fn provider(&self, base_url: &str) -> Box<dyn Provider> {
        let key = |name: &str| (name == "LOCAL_KEY").then(|| "sk-secret-of-test".to_owned());
        let endpoint = Endpoint::new(config(&format!("{base_url}/v1")), &key).unwrap();
        Box::new(openai::OpenAi::new(endpoint))
    }

    fn side(&self, request: &str, _: &[u8]) -> (u16, Value) {
        match request {
            "GET /v1/models" => {
                let model = json!({ "id": "qwen3:8b", "object": "model", "max_model_len": 4096 });
                (200, json!({ "object": "list", "data": [model] }))
            }
            _ => (404, json!({ "detail": "Not Found" })),
        }
    }

    fn events(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut events = vec![event(&choice(&json!({ "role": "assistant", "content": "" })))];
        let thinking = answer.thinking.iter().map(|piece| json!({ "reasoning_content": piece }));
        let pieces = answer.pieces.iter().map(|piece| json!({ "content": piece }));
        events.extend(thinking.chain(pieces).map(|delta| event(&choice(&delta))));
        // The calls begin one after the other, and their arguments arrive in fragments, by turns.
        let texts: Vec<String> = answer.calls.iter().map(|it| it.arguments.to_string()).collect();
        for (at, call) in answer.calls.iter().enumerate() {
            let function = json!({ "name": call.name, "arguments": "" });
            let begun =
                json!({ "index": at, "id": call.id, "type": "function", "function": function });
            events.push(event(&choice(&json!({ "tool_calls": [begun] }))));
        }
        for (at, text) in texts.iter().enumerate() {
            let characters: Vec<char> = text.chars().collect();
            for fragment in characters.chunks(7) {
                let fragment: String = fragment.iter().collect();
                let delta = json!({ "index": at, "function": { "arguments": fragment } });
                events.push(event(&choice(&json!({ "tool_calls": [delta] }))));
            }
        }
        let reason = match (answer.is_cut, answer.calls.is_empty()) {
            (true, _) => "length",
            (false, true) => "stop",
            (false, false) => "tool_calls",
        };
        let mut last = choice(&json!({}));
        last["choices"][0]["finish_reason"] = json!(reason);
        events.push(event(&last));
        if answer.counts.is_object() {
            let usage = json!({
                "prompt_tokens": answer.counts["prompt"],
                "completion_tokens": answer.counts["answer"],
                "prompt_tokens_details": { "cached_tokens": answer.counts["cached"] },
            });
            events.push(event(&json!({ "id": "chatcmpl-1", "choices": [], "usage": usage })));
        }
        events.push(b"data: [DONE]\n\n".to_vec());
        events
    }

    fn error_event(&self, message: &str) -> Vec<u8> {
        event(&json!({ "error": { "message": message, "code": 500 } }))
    }

    fn malformed_event(&self, data: &[u8]) -> Vec<u8> {
        [b"data: ", data, b"\n\n"].concat()
    }

    fn refusal(&self, message: &str) -> String {
        json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null } })
            .to_string()
    }

    fn overflows(&self) -> Vec<(u16, String)> {
        let openai = json!({ "error": {
            "message": "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
        } });
        let newer = json!({ "error": {
            "message": "Input tokens exceed the configured limit of 4096 tokens. Your messages resulted in 5000 tokens.",
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
        } });
        let vllm = json!({
            "object": "error", "type": "BadRequestError", "param": null, "code": 400,
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4488 in the messages, 512 in the completion).",
        });
        let llama_cpp = json!({ "error": {
            "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096,
            "message": "the request exceeds the available context size. try increasing the context size or enable context shift",
        } });
        let lm_studio = json!({
            "error": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        });
        let litellm = json!({ "error": {
            "message": "litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - {\"type\":\"error\"}",
            "type": null, "param": null, "code": "400",
        } });
        let openrouter = json!({ "error": {
            "message": "This endpoint's maximum context length is 4096 tokens. However, you requested about 5000 tokens.",
            "code": 400,
        } });
        let sglang = json!({
            "object": "error", "type": "BadRequestError", "code": 400,
            "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        });
        let refusals =
            [openai, newer, vllm, llama_cpp.clone(), lm_studio, litellm, openrouter, sglang];
        let mut overflows: Vec<_> = refusals.into_iter().map(|it| (400, it.to_string())).collect();
        overflows.push((500, llama_cpp.to_string()));
        overflows
    }

    fn missing_model(&self) -> (u16, String) {
        let missing = json!({
            "object": "error", "message": "The model `qwen3:8b` does not exist.", "type": "NotFoundError",
            "param": "model", "code": 404,
        });
        (404, missing.to_string())
    }

    fn no_tools(&self) -> (u16, String) {
        let words = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
        (400, self.refusal(words))
    }

    fn caches(&self, mut answer: Answer, cached: u64) -> Answer {
        answer.counts["cached"] = json!(cached);
        answer
    }

    fn messages(&self, body: &Value) -> Vec<SentMessage> {
        let messages = body["messages"].as_array().unwrap().iter().map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            SentMessage {
                role: text(&message["role"]),
                content: text(&message["content"]),
                calls: calls
                    .map(|call| {
                        let function = &call["function"];
                        let arguments = function["arguments"].as_str().unwrap();
                        let arguments = serde_json::from_str(arguments).unwrap();
                        assert_eq!(call["type"], "function");
                        (text(&call["id"]), text(&function["name"]), arguments)
                    })
                    .collect(),
                result_of: message["tool_call_id"].as_str().map(str::to_owned),
            }
        });
        messages.collect()
    }

    fn options(&self, body: &Value) -> Value {
        json!({
            "temperature": body["temperature"],
            "top_p": body["top_p"],
            "seed": body["seed"],
            "stop": body["stop"],
            "schema": body["response_format"]["json_schema"]["schema"],
            "limit": body["max_tokens"],
        })
    }
}
