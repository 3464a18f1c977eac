//! Request ids: each answer has one in `X-Request-Id`, and the problem and the log lines of a request name it.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use futures_util::{Stream, StreamExt as _, stream::poll_fn};
use tracing::{Instrument as _, Span};
use uuid::Uuid;

pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longer ids of callers are replaced.
const MAX_CHARS: usize = 128;

tokio::task_local! {
    static CURRENT: String;
}

/// Assigns a request id, in the outermost layer. The caller's own id is kept, for example that of a proxy.
pub(super) async fn assign(request: Request, next: Next) -> Response {
    let id = from_caller(request.headers()).unwrap_or_else(|| Uuid::now_v7().to_string());
    // At error level, so that a filter for errors keeps the id on their lines.
    let span = tracing::error_span!("request", request_id = id);
    let header = HeaderValue::from_str(&id);
    let mut response = CURRENT.scope(id, next.run(request)).instrument(span).await;
    if let Ok(header) = header {
        response.headers_mut().insert(X_REQUEST_ID, header);
    }
    response
}

/// Returns the id of the current request.
pub(super) fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Polls a stream, which outlives the head of the answer, as a part of the request that is being answered.
pub(super) fn carry_request_id<S: Stream + Unpin>(mut stream: S) -> impl Stream<Item = S::Item> {
    let (id, span) = (current().unwrap_or_default(), Span::current());
    poll_fn(move |context| {
        span.in_scope(|| CURRENT.sync_scope(id.clone(), || stream.poll_next_unpin(context)))
    })
}

fn from_caller(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c));
    (is_plain && (1..=MAX_CHARS).contains(&id.len())).then(|| id.to_owned())
}
