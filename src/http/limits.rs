//! Limits for the length of URI, headers and body.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::CONTENT_LENGTH},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::Problem;

/// The limit for the body of a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit(pub(super) usize);

/// Refuses a body by its declared length before any of it is read: a client that waits for `100 Continue` then sends none of it.
/// `key` is the setting that limits the route.
pub(super) fn check_declared_length(request: &Request, key: &str) -> Result<(), Problem> {
    let limit = request.extensions().get::<BodyLimit>();
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|length| length.parse::<usize>().ok());
    match (limit, length) {
        (Some(BodyLimit(limit)), Some(length)) if length > *limit => Err(too_long(key)),
        _ => Ok(()),
    }
}

/// Builds the refusal of a body over the limit.
pub(super) fn too_long(key: &str) -> Problem {
    let detail =
        format!("the request body is larger than {key} allows: shorten it, or raise the limit");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

/// Far longer than any URI of this API.
const MAX_URI_BYTES: usize = 8 * 1024;

pub(super) async fn limit_head_size(
    State(max_header_bytes): State<usize>,
    request: Request,
    next: Next,
) -> Response {
    let uri = request.uri();
    let n_uri_bytes = uri.path().len() + uri.query().unwrap_or_default().len();
    if n_uri_bytes > MAX_URI_BYTES {
        let detail = format!(
            "the URL has {n_uri_bytes} bytes, at most {MAX_URI_BYTES} are allowed: shorten it"
        );
        return Problem::new(StatusCode::URI_TOO_LONG, "uri_too_long", detail).into_response();
    }
    let n_header_bytes = size(request.headers());
    if n_header_bytes > max_header_bytes {
        let detail = format!(
            "the headers have {n_header_bytes} bytes, http.max_header_bytes allows {max_header_bytes}: send smaller headers"
        );
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Problem::new(status, "headers_too_large", detail).into_response();
    }
    next.run(request).await
}

fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}
