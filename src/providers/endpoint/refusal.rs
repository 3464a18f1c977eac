//! Maps refusals, and errors inside of a stream, to errors. Each server has words of its own, and a proxy passes on those of others.

use std::time::Duration;

use serde_json::Value;

use super::{Error, Server};
use crate::providers::http::{Refusal, error_text, excerpt};

/// The call that was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::providers) struct Call<'a> {
    pub(in crate::providers) model: &'a str,
    pub(in crate::providers) window_tokens: u32,
}

/// Phrases for a prompt that is too long, in small letters, with the servers that use them.
const OVERFLOWS: [&str; 16] = [
    "context_length_exceeded",                      // OpenAI, as a code
    "maximum context length",                       // OpenAI, vLLM, OpenRouter, LiteLLM
    "exceed_context_size",                          // llama.cpp, as a type
    "exceeds the available context size",           // llama.cpp
    "exceed context window",                        // llama-cpp-python
    "greater than the context length",              // LM Studio
    "tokens when context the overflows",            // LM Studio, older
    "context size has been exceeded",               // LM Studio with MLX
    "contextwindowexceedederror",                   // LiteLLM
    "input tokens exceed the configured limit",     // OpenAI's newer models, Azure
    "longer than the model's context length",       // SGLang
    "prompt is too long",                           // Anthropic
    "exceed context limit",                         // Anthropic
    "longer than the context length",               // Ollama
    "exceeds the maximum number of tokens allowed", // Gemini, behind a proxy
    "`inputs` tokens + `max_new_tokens` must be",   // Text Generation Inference
];
/// Phrases for a model or server that cannot call tools.
const NO_TOOLS: [&str; 4] = [
    "does not support tools",
    "support tool use",
    "tool choice requires --enable-auto-tool-choice",
    "tools param requires --jinja",
];
/// Phrases for signed thinking that the server does not accept back.
const BAD_THINKING: [&str; 5] = [
    "`signature` in `thinking` block",
    "bound to a different conversation",
    "`redacted_thinking`",
    "must start with a thinking block",
    "latest assistant message cannot be modified",
];
/// Phrases for a model that the server does not have.
const NO_MODEL: [&str; 6] = [
    "model_not_found",
    "invalid model name",
    "is not a valid model",
    "no endpoints found for",
    "model not found",
    "notfounderror",
];
/// Phrases for a key that the server does not know, with a status that does not say so.
const BAD_KEY: [&str; 2] = [
    "no_db_connection", // LiteLLM without a database, for a key other than its master key
    "api key not valid", // Gemini
];
/// Phrases for an account without money. They come with the status of a rate limit.
const NO_CREDIT: [&str; 7] = [
    "insufficient_quota",
    "exceeded your current quota",
    "insufficient credits",
    "credit balance is too low",                         // Anthropic
    "reached your specified api usage limits",           // Anthropic, a limit of the account
    "reached your specified workspace api usage limits", // Anthropic
    "enforced_spend_limit_reached",                      // Anthropic, as a code
];
/// Phrases for a call that may succeed later, in errors without a status.
const BUSY: [&str; 5] =
    ["overloaded", "rate_limit", "rate limit", "too many requests", "at capacity"];

/// Returns the error for an answer with a status other than 2xx.
pub(in crate::providers) fn error_of_refusal(
    server: Server,
    refusal: &Refusal,
    call: Call<'_>,
) -> Error {
    let status = refusal.status;
    let (message, is_json) = message(&refusal.body);
    if let Some(error) = error_of_words(&server, status, &message, call) {
        return error;
    }
    let after = refusal.retry_after.unwrap_or_default();
    let is_html = refusal.body.trim_ascii_start().starts_with(b"<");
    match status {
        300..=399 => Error::Redirected { server, status },
        402 => Error::NoCredit { server, message },
        413 => Error::Overflow { server, window_tokens: call.window_tokens, message },
        429 | 503 | 529 => Error::Busy { server, after, message, told: Box::new(refusal.told) },
        401 | 407 => Error::KeyRefused { server, status, message },
        // A filter in front of the model uses the same status.
        403 if message.to_lowercase().contains("flagged") => {
            Error::Refused { server, status, message }
        }
        403 => Error::KeyRefused { server, status, message },
        404 if is_json && message.contains("model") => {
            Error::ModelMissing { server, model: call.model.to_owned(), message }
        }
        404 | 405 => Error::NotTheApi { server, status },
        // A proxy's 408 and 499 are about time, not about the call.
        400..=499 if is_html => Error::NotTheApi { server, status },
        400..=499 if !matches!(status, 408 | 425 | 499) => {
            Error::Refused { server, status, message }
        }
        _ => Error::Failed { server, status, message },
    }
}

/// Returns the error for an `error` inside of an answer with status 200. It may name the status that it stands for.
pub(in crate::providers) fn error_of_event(server: Server, error: &Value, call: Call<'_>) -> Error {
    let message = excerpt(&full_text(error));
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| code.try_into().ok());
    if let Some(error) = error_of_words(&server, status.unwrap_or(200), &message, call) {
        return error;
    }
    let says_busy = has_any(&message, &BUSY);
    match status {
        Some(429 | 503 | 529) => busy(server, message),
        Some(402) => Error::NoCredit { server, message },
        Some(status @ (401 | 403)) => Error::KeyRefused { server, status, message },
        _ if says_busy => busy(server, message),
        _ => Error::FailedInStream { server, message },
    }
}

fn busy(server: Server, message: String) -> Error {
    Error::Busy { server, after: Duration::ZERO, message, told: Box::default() }
}

/// Recognises the words of the server, with any status.
fn error_of_words(
    server: &Server,
    status: u16,
    message: &str,
    Call { model, window_tokens }: Call<'_>,
) -> Option<Error> {
    let (server, message_text, model) = (server.clone(), message.to_owned(), model.to_owned());
    if has_any(message, &OVERFLOWS) {
        return Some(Error::Overflow { server, window_tokens, message: message_text });
    }
    if has_any(message, &NO_TOOLS) {
        return Some(Error::NoTools { server, model, message: message_text });
    }
    if has_any(message, &NO_CREDIT) {
        return Some(Error::NoCredit { server, message: message_text });
    }
    if status == 400 && has_any(message, &BAD_THINKING) {
        return Some(Error::HistoryRefused { server, message: message_text });
    }
    if status == 400 && has_any(message, &BAD_KEY) {
        return Some(Error::KeyRefused { server, status, message: message_text });
    }
    if matches!(status, 400 | 404) && has_any(message, &NO_MODEL) {
        return Some(Error::ModelMissing { server, model, message: message_text });
    }
    None
}

fn has_any(message: &str, phrases: &[&str]) -> bool {
    let message = message.to_lowercase();
    phrases.iter().any(|phrase| message.contains(phrase))
}

/// Returns the server's message, and true if it came as JSON.
fn message(body: &[u8]) -> (String, bool) {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let Some(json) = json.filter(Value::is_object) else {
        return (excerpt(&String::from_utf8_lossy(body)), false);
    };
    // Older vLLM has the fields of the error at the top, and FastAPI a field `detail`.
    let error = json.get("error").or_else(|| json.get("detail")).unwrap_or(&json);
    (excerpt(&full_text(error)), true)
}

/// Returns the text of an error with its code, if that is a word.
fn full_text(error: &Value) -> String {
    let text = error_text(error);
    let code = error.get("code").or_else(|| error.pointer("/details/error_code"));
    match code.and_then(Value::as_str) {
        Some(code) if code.parse::<u16>().is_err() => format!("{code}: {text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, body: &str) -> &'static str {
        let server = Server { name: "local".to_owned(), host: "h".to_owned() };
        let refusal = Refusal {
            status,
            retry_after: None,
            told: Default::default(),
            body: body.as_bytes().to_vec(),
        };
        error_of_refusal(server, &refusal, Call { model: "m", window_tokens: 4096 }).code()
    }

    #[test]
    fn html_is_told_from_the_api() {
        assert_eq!(code(404, "<html>404</html>"), "endpoint.not_the_api");
        assert_eq!(code(400, "<!doctype html>"), "endpoint.not_the_api");
        assert_eq!(code(502, "<html>Bad gateway</html>"), "endpoint.failed");
        assert_eq!(code(503, "<html>Busy</html>"), "endpoint.busy");
    }

    #[test]
    fn an_empty_account_is_not_a_rate_limit() {
        let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(code(429, quota), "endpoint.no_credit");
        let limit = r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#;
        assert_eq!(code(429, limit), "endpoint.busy");
    }

    #[test]
    fn thinking_that_is_refused_is_a_fault_of_the_history() {
        let refused = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#;
        assert_eq!(code(400, refused), "endpoint.history_refused");
        for why in [
            "a final assistant message must start with a thinking block",
            "blocks in the latest assistant message cannot be modified",
        ] {
            assert_eq!(code(400, why), "endpoint.history_refused");
        }
        let spent = r#"{"type":"error","error":{"type":"rate_limit_error","message":"No more","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        assert_eq!(code(429, spent), "endpoint.no_credit");
    }

    #[test]
    fn a_flagged_prompt_is_not_a_wrong_key() {
        assert_eq!(code(403, r#"{"error":{"message":"input was flagged"}}"#), "endpoint.refused");
        assert_eq!(code(403, r#"{"error":{"message":"no access"}}"#), "endpoint.key_refused");
    }
}
