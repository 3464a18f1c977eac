//! What every request has to pass before a handler sees it.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{HOST, ORIGIN},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::Problem;

/// Answers for a handler that takes too long. Streams have answered when they begin.
pub(super) async fn in_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => {
            let limit_secs = limit.as_secs();
            let detail = format!(
                "no answer within the {limit_secs} s of http.request_timeout_secs; what was asked may or may not have been done"
            );
            let problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail);
            Problem { retryable: true, ..problem }.into_response()
        }
    }
}

/// Refuses what a page of another site makes a browser send: on loopback, a browser is inside.
pub(super) async fn from_here(request: Request, next: Next) -> Response {
    match is_foreign(request.headers()) {
        false => next.run(request).await,
        true => {
            let detail = "a page of another origin may not use this service";
            Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail).into_response()
        }
    }
}

fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    authority.is_none() || authority != host
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:7770"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        headers
    }

    #[test]
    fn only_pages_of_this_service_may_use_it() {
        assert!(!is_foreign(&headers(None)));
        assert!(!is_foreign(&headers(Some("http://127.0.0.1:7770"))));
        for origin in ["http://evil.example", "null", "", "http://127.0.0.1:7771"] {
            assert!(is_foreign(&headers(Some(origin))), "{origin}");
        }
    }
}
