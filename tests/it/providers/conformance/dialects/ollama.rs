//! Ollama: JSON lines.

use dalsegno::providers::{self, Provider};
use serde_json::{Value, json};

use super::{Answer, Dialect, SentMessage};
use crate::providers::fake_ollama::{config, line};

pub struct Ollama;

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn codes(&self) -> &'static str {
        "ollama"
    }

    fn chat(&self) -> &'static str {
        "POST /api/chat"
    }

    fn description(&self) -> &'static str {
        "POST /api/show"
    }

    fn provider(&self, base_url: &str) -> Box<dyn Provider> {
        Box::new(providers::ollama::Ollama::new(config(base_url)).unwrap())
    }

    fn side(&self, request: &str, _: &[u8]) -> (u16, Value) {
        match request {
            "GET /api/version" => (200, json!({ "version": "0.33.1" })),
            "POST /api/show" => {
                let shown = json!({
                    "details": { "family": "qwen3" },
                    "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
                    "capabilities": ["completion", "tools", "thinking"],
                });
                (200, shown)
            }
            _ => (404, json!("404 page not found")),
        }
    }

    fn events(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let message = |message: Value| line(&json!({ "message": message, "done": false }));
        let thinking = answer
            .thinking
            .iter()
            .map(|piece| message(json!({ "role": "assistant", "content": "", "thinking": piece })));
        let pieces = answer
            .pieces
            .iter()
            .map(|piece| message(json!({ "role": "assistant", "content": piece })));
        let calls = answer.calls.iter().enumerate().map(|(at, call)| {
            let function = json!({ "index": at, "name": call.name, "arguments": call.arguments });
            let mut sent = json!({ "function": function });
            if let Some(id) = &call.id {
                sent["id"] = json!(id);
            }
            message(json!({ "role": "assistant", "content": "", "tool_calls": [sent] }))
        });
        let reason = if answer.is_cut { "length" } else { "stop" };
        let mut last = json!({
            "message": { "role": "assistant", "content": "" },
            "done": true,
            "done_reason": reason,
        });
        if answer.counts.is_object() {
            last["prompt_eval_count"] = answer.counts["prompt"].clone();
            last["eval_count"] = answer.counts["answer"].clone();
            last["prompt_eval_cached_count"] = answer.counts["cached"].clone();
        }
        thinking.chain(pieces).chain(calls).chain([line(&last)]).collect()
    }

    fn error_event(&self, message: &str) -> Vec<u8> {
        line(&json!({ "error": message }))
    }

    fn malformed_event(&self, data: &[u8]) -> Vec<u8> {
        [data, b"\n"].concat()
    }

    fn refusal(&self, message: &str) -> String {
        json!({ "error": message }).to_string()
    }

    fn overflows(&self) -> Vec<(u16, String)> {
        let llama = json!({ "error": { "code": 400, "type": "exceed_context_size_error", "message": "no" } });
        [
            (400, self.refusal("the prompt is longer than the context length currently available")),
            (400, self.refusal("the input length exceeds the context length")),
            (500, self.refusal("request (9 tokens) exceeds the available context size")),
            (400, llama.to_string()),
        ]
        .into()
    }

    fn missing_model(&self) -> (u16, String) {
        (404, self.refusal("model 'qwen3:8b' not found"))
    }

    fn no_tools(&self) -> (u16, String) {
        (400, self.refusal("registry.ollama.ai/library/qwen3:8b does not support tools"))
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
                        (text(&call["id"]), text(&function["name"]), function["arguments"].clone())
                    })
                    .collect(),
                result_of: message["tool_call_id"].as_str().map(str::to_owned),
            }
        });
        messages.collect()
    }

    fn options(&self, body: &Value) -> Value {
        let options = &body["options"];
        json!({
            "temperature": options["temperature"],
            "top_p": options["top_p"],
            "seed": options["seed"],
            "stop": options["stop"],
            "schema": body["format"],
            "limit": options["num_predict"],
        })
    }

    fn lacks(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("a_filtered_answer_is_rejected", "Ollama filters nothing"),
            ("an_empty_account_fails_the_task", "there are no accounts"),
            ("a_key_is_sent_and_never_shown", "there are no keys"),
            ("a_wrong_key_is_recognised_with_any_status", "there are no keys"),
            ("a_busy_error_in_a_stream_postpones", "a full queue is told by the status"),
            ("a_missing_end_after_the_finish_counts", "an answer has one last line"),
            ("repeated_ids_become_unique", "the server gives every call an id of its own"),
            ("arguments_that_are_not_json_reach_the_tool_as_text", "the server parses arguments"),
            ("an_answer_that_is_not_streamed_is_read", "the server always streams"),
            (
                "html_with_status_200_is_not_the_api",
                "a line that is not JSON is a fault of the server",
            ),
            ("comments_in_a_stream_are_ignored", "JSON lines have none"),
            ("an_overloaded_server_with_status_529_postpones", "the server does not use it"),
            (
                "an_untrusted_certificate_fails_with_a_reason",
                "the connection counts as unreachable",
            ),
        ]
    }
}
