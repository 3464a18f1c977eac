//! Idempotency keys of requests, and the header of a replayed answer.

use axum::http::{HeaderMap, HeaderName, StatusCode};

use super::Problem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Header of an answer that replays the one of an earlier request.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| !key.is_empty());
    key.map(Some).ok_or_else(|| {
        let detail = "the header Idempotency-Key is empty or has invalid characters: use visible ASCII characters";
        Problem::new(StatusCode::BAD_REQUEST, "bad_idempotency_key", detail)
    })
}
