//! Errors as the client sees them: problem+json with a stable `code`, and whether trying again can help.

use axum::{
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    pub title: &'static str,
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    /// Stable: programs decide by it.
    pub code: &'static str,
    /// For people: what happened here, and what to do next.
    pub detail: String,
    /// Whether the same request can succeed later.
    pub retryable: bool,
}

impl Problem {
    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            title: "Service unavailable",
            status: StatusCode::SERVICE_UNAVAILABLE,
            code,
            detail: detail.into(),
            retryable: true,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_string(&self).unwrap_or_default();
        (self.status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}

pub(super) async fn not_found() -> Problem {
    Problem {
        title: "Not found",
        status: StatusCode::NOT_FOUND,
        code: "not_found",
        detail: "there is nothing at this path".to_owned(),
        retryable: false,
    }
}

pub(super) async fn method_not_allowed() -> Problem {
    Problem {
        title: "Method not allowed",
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        detail: "this path does not take this method".to_owned(),
        retryable: false,
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
