//! Maps statuses other than 2xx, and error lines inside of a stream, to errors.

use std::time::Duration;

use serde_json::Value;

use super::error::Error;

/// An HTTP answer that refuses a call.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub(super) host: &'a str,
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: &'a [u8],
}

/// The call that was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    pub(super) num_ctx: u32,
}

/// Maximum length of a server's message in an error.
const MAX_MESSAGE_CHARS: usize = 300;

/// Phrases of the engines under Ollama for a prompt that is too long. Some come with status 400, some with 500, some inside of a stream.
const OVERFLOWS: [&str; 4] = [
    "longer than the context length",
    "exceeds the context length",
    "exceeds the available context size",
    "exceed_context_size",
];

/// Phrase of a server for a model whose template has no place for tools.
const NO_TOOLS: &str = "does not support tools";

pub(super) fn error_of_refusal(refusal: &Refusal<'_>, call: Call<'_>) -> Error {
    let Call { model, num_ctx } = call;
    let Refusal { status, .. } = *refusal;
    let host = refusal.host.to_owned();
    let (message, is_json) = message(refusal.body);
    if status == 413 || is_overflow(&message) {
        return Error::Overflow { num_ctx, message };
    }
    if message.contains(NO_TOOLS) {
        return Error::NoTools { model: model.to_owned() };
    }
    match status {
        300..=399 => Error::Redirected { host, status },
        401 | 403 | 407 => Error::AuthenticationRequired { host, status },
        404 if is_json && message.contains("not found") => {
            Error::ModelMissing { host, model: model.to_owned() }
        }
        404 | 405 => Error::NotOllama { host, status },
        429 | 503 => Error::Busy { host, after: refusal.retry_after.unwrap_or_default(), message },
        // A proxy's 408 and 499 are about time, not about the call.
        400..=499 if !matches!(status, 408 | 499) => Error::Refused { status, message },
        _ => Error::Failed { status, message },
    }
}

pub(super) fn error_of_line(error: &Value, num_ctx: u32) -> Error {
    let message = excerpt(&error_text(error));
    match is_overflow(&message) {
        true => Error::Overflow { num_ctx, message },
        false => Error::FailedInStream { message },
    }
}

/// Returns the server's message, and true if it has Ollama's format.
fn message(body: &[u8]) -> (String, bool) {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    match json.as_ref().and_then(|json| json.get("error")) {
        Some(error) => (excerpt(&error_text(error)), true),
        None => (excerpt(&String::from_utf8_lossy(body)), false),
    }
}

/// Returns the text of an error, which an engine sends as text, as an object, or as an object inside of a text.
fn error_text(error: &Value) -> String {
    match error {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => error_text(inner.get("error").unwrap_or(&inner)),
            _ => text.clone(),
        },
        Value::Object(object) => {
            let part = |key| object.get(key).and_then(Value::as_str);
            let parts: Vec<_> = ["type", "message"].into_iter().filter_map(part).collect();
            match parts.is_empty() {
                true => error.to_string(),
                false => parts.join(": "),
            }
        }
        other => other.to_string(),
    }
}

fn is_overflow(message: &str) -> bool {
    let message = message.to_lowercase();
    OVERFLOWS.iter().any(|words| message.contains(words))
}

/// Returns one line that cannot break a log or a terminal.
fn excerpt(text: &str) -> String {
    let line: String = text.split(|c: char| c.is_whitespace() || c.is_control()).fold(
        String::new(),
        |mut line, word| {
            if !word.is_empty() && line.len() <= MAX_MESSAGE_CHARS * 4 {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            line
        },
    );
    match line.is_empty() {
        true => "no explanation".to_owned(),
        false => line.chars().take(MAX_MESSAGE_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, body: &str) -> &'static str {
        let refusal = Refusal { host: "h", status, retry_after: None, body: body.as_bytes() };
        error_of_refusal(&refusal, Call { model: "m", num_ctx: 4096 }).code()
    }

    #[test]
    fn every_wording_of_too_long_is_recognised() {
        let ways = [
            r#"{"error":"the prompt is longer than the context length currently available"}"#,
            r#"{"error":"the input length exceeds the context length"}"#,
            r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"no"}}"#,
            r#"{"error":"{\"error\":{\"message\":\"request (9 tokens) exceeds the available context size\"}}"}"#,
        ];
        for way in ways {
            assert_eq!(code(400, way), "ollama.overflow", "{way}");
            assert_eq!(code(500, way), "ollama.overflow", "{way}");
            let json: Value = serde_json::from_str(way).unwrap();
            assert_eq!(error_of_line(&json["error"], 4096).code(), "ollama.overflow", "{way}");
        }
    }

    #[test]
    fn http_statuses_are_distinguished() {
        let missing = r#"{"error":"model 'm' not found"}"#;
        assert_eq!(code(404, missing), "ollama.model_missing");
        assert_eq!(code(404, "404 page not found"), "ollama.not_ollama");
        let no_tools = r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#;
        assert_eq!(code(400, no_tools), "ollama.no_tools");
        assert_eq!(code(503, ""), "ollama.busy");
        assert_eq!(code(429, "{}"), "ollama.busy");
        assert_eq!(code(302, ""), "ollama.redirected");
        assert_eq!(code(401, ""), "ollama.authentication_required");
        assert_eq!(code(400, r#"{"error":"invalid message role"}"#), "ollama.refused");
        for status in [408, 499, 500, 502, 504] {
            assert_eq!(code(status, ""), "ollama.failed", "{status}");
        }
    }

    #[test]
    fn a_servers_message_becomes_one_short_line() {
        assert_eq!(excerpt("a\u{1b}[31m\n\tb\0c"), "a [31m b c");
        assert_eq!(excerpt(&"é ".repeat(9_999)).chars().count(), MAX_MESSAGE_CHARS);
        assert_eq!(excerpt(" \n"), "no explanation");
    }
}
