//! Limits for the length of URI, headers and body.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::CONTENT_LENGTH},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{Problem, auth::BAD_KEYS_PER_MINUTE, multipart::MAX_PARTS};
use crate::domain::limits::{
    LimitEffect::{Refused, Sentence},
    LimitEntry,
};

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

/// Longest time that the check of the configuration accepts.
const YEAR_SECS: Option<u64> = Some(365 * 86_400);

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "bytes of path and query of a URL",
        MAX_URI_BYTES as u64,
        Refused("uri_too_long"),
    ),
    LimitEntry::setting(
        "bytes of all headers of a request",
        "http.max_header_bytes",
        (1024, None),
        Refused("headers_too_large"),
    ),
    LimitEntry::setting(
        "bytes of the body of a request",
        "http.max_body_bytes",
        (1024, None),
        Refused("body_too_large"),
    ),
    LimitEntry::setting(
        "bytes of a body with a list, such as tasks in bulk, children and an import of memory, or with attachments",
        "http.max_bulk_bytes",
        (1024, None),
        Refused("body_too_large"),
    ),
    LimitEntry::fixed(
        "parts of a request with attachments (`multipart/form-data`)",
        MAX_PARTS as u64,
        Refused("bad_body"),
    ),
    LimitEntry::setting(
        "seconds of a request, except streams",
        "http.request_timeout_secs",
        (1, YEAR_SECS),
        Refused("timeout"),
    ),
    LimitEntry::setting(
        "seconds until the headers of a request are complete",
        "http.header_timeout_secs",
        (1, YEAR_SECS),
        Sentence("The connection is closed."),
    ),
    LimitEntry::setting(
        "requests per minute of an API key, or of an address without one",
        "http.requests_per_minute",
        (0, None),
        Sentence("Refused: `too_many_requests`, with `Retry-After`. 0: no limit."),
    ),
    LimitEntry::fixed(
        "requests per minute of an address with invalid keys; as many again with unknown sign-in cookies",
        BAD_KEYS_PER_MINUTE as u64,
        Refused("too_many_bad_keys"),
    ),
    LimitEntry::setting(
        "requests that wait for tasks at once, streams included",
        "http.max_waiting",
        (1, None),
        Refused("too_many_waiting"),
    ),
    LimitEntry::setting(
        "of these, requests of an API key, or of an address without one",
        "http.max_waiting_per_client",
        (1, None),
        Refused("too_many_waiting_per_client"),
    ),
    LimitEntry::setting(
        "streams of open pages; all tabs of a browser share one",
        "http.max_page_streams",
        (1, None),
        Refused("too_many_waiting"),
    ),
    LimitEntry::setting(
        "of these, streams of an API key, or of an address without one",
        "http.max_page_streams_per_client",
        (1, None),
        Refused("too_many_waiting_per_client"),
    ),
];

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
