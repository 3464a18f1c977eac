//! Maps statuses other than 2xx, and error lines inside of a stream, to errors.

use serde_json::Value;

use super::error::Error;
use crate::providers::http::{Refusal, error_text, excerpt};

/// The call that was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    pub(super) num_ctx: u32,
}

/// Phrases of the engines under Ollama for a prompt that is too long. Some come with status 400, some with 500, some inside of a stream.
const OVERFLOWS: [&str; 4] = [
    "longer than the context length",
    "exceeds the context length",
    "exceeds the available context size",
    "exceed_context_size",
];

/// Phrase of a server for a model whose template has no place for tools.
const NO_TOOLS: &str = "does not support tools";

pub(super) fn error_of_refusal(host: &str, refusal: &Refusal, call: Call<'_>) -> Error {
    let Call { model, num_ctx } = call;
    let Refusal { status, .. } = *refusal;
    let host = host.to_owned();
    let (message, is_json) = refusal.message();
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

fn is_overflow(message: &str) -> bool {
    let message = message.to_lowercase();
    OVERFLOWS.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, body: &str) -> &'static str {
        let refusal = Refusal {
            status,
            retry_after: None,
            told: Default::default(),
            body: body.as_bytes().to_vec(),
        };
        error_of_refusal("h", &refusal, Call { model: "m", num_ctx: 4096 }).code()
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
}
