//! Problem documents: errors as problem+json with a stable `code`, and whether a retry can help.

use axum::{
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::request_id;
use crate::{
    causes::causes,
    domain::class::{Classify, Kind},
    operations::{self, FieldError, Refusal},
};

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// No page says more than `code` and `detail` do (RFC 9457).
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub uri: ProblemType,
    pub title: &'static str,
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16)]
    pub status: StatusCode,
    /// Stable: programs decide by it.
    pub code: &'static str,
    /// For people: what happened here, and what to do next.
    pub detail: String,
    /// True if the same request can succeed later.
    pub retryable: bool,
    /// Seconds for the `Retry-After` header.
    #[serde(skip)]
    pub retry_after_secs: Option<u32>,
    /// The parts of the request that are wrong, where that can be said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The id in the header `X-Request-Id` of the answer and in the log of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub request_id: Option<Box<str>>,
}

/// The only value of `type`.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum ProblemType {
    #[serde(rename = "about:blank")]
    Blank,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            uri: ProblemType::Blank,
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            code,
            detail: detail.into(),
            retryable: false,
            retry_after_secs: None,
            errors: Vec::new(),
            request_id: None,
        }
    }

    /// Names the request that is being answered.
    pub(super) fn of_this_request(self) -> Self {
        Self { request_id: request_id::current().map(Into::into), ..self }
    }

    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail) }
    }
}

impl<E: Classify> From<E> for Problem {
    fn from(error: E) -> Self {
        Refusal::from(error).into()
    }
}

/// Maps each refusal to its status.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { kind, code, detail, retryable, retry_after_secs, advice, wrong, source } =
            refusal;
        let status = StatusCode::from_u16(operations::status(kind));
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let detail = match (kind, source) {
            // The database's texts can contain parts of statements, so they go to the log only.
            (Kind::Unavailable | Kind::Internal, Some(source)) => {
                tracing::error!(error = causes(&*source), "a request failed");
                format!("{detail}; {}", advice.unwrap_or_default())
            }
            _ => detail,
        };
        Self { retryable, retry_after_secs, errors: wrong, ..Self::new(status, code, detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after_secs) = (self.status, self.retry_after_secs);
        let problem = self.of_this_request();
        let body = serde_json::to_string(&problem).unwrap_or_default();
        let mut response = answer(status, retry_after_secs, body);
        // For pages, which show it in another form.
        response.extensions_mut().insert(problem);
        response
    }
}

fn answer(status: StatusCode, retry_after_secs: Option<u32>, body: String) -> Response {
    let retry_after = retry_after_secs.map(|secs| [(RETRY_AFTER, secs.to_string())]);
    let kind = [(CONTENT_TYPE, "application/problem+json")];
    match retry_after {
        Some(retry_after) => (status, kind, retry_after, body).into_response(),
        None => (status, kind, body).into_response(),
    }
}

pub(super) async fn not_found() -> Problem {
    unknown_route()
}

pub(super) fn unknown_route() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is no route at this path: the API is below /v1, for example /v1/campaigns and /v1/tasks",
    )
}

pub(super) async fn method_not_allowed() -> Problem {
    let detail =
        "this path does not support this method: the header Allow lists the supported methods";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
