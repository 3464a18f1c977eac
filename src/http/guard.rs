//! Checks on each request before its handler runs.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{Config, Problem};

/// Paths that are answered under any host name: probes use all kinds of names, and their answers are not confidential.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Headers that must occur once. With two values, a proxy in front may have decided by the other one.
const SINGLE_HEADERS: [HeaderName; 6] = [
    HOST,
    ORIGIN,
    AUTHORIZATION,
    CONTENT_TYPE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
];

/// Host names of the service.
#[derive(Debug, Clone)]
pub(super) struct Names(Arc<[String]>);

/// Answers 504 if a handler takes too long. Streams are not affected, because their response begins at once.
pub(super) async fn limit_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => {
            let limit_secs = limit.as_secs();
            let detail = format!(
                "the request took longer than {limit_secs} s (http.request_timeout_secs) and may or may not have taken effect: check before you repeat it, or send an Idempotency-Key"
            );
            let problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail);
            Problem { retryable: true, ..problem }.into_response()
        }
    }
}

/// Refuses requests that repeat a header of `SINGLE_HEADERS`.
pub(super) async fn refuse_repeated_headers(request: Request, next: Next) -> Response {
    let has_two = |name: &&HeaderName| request.headers().get_all(*name).iter().nth(1).is_some();
    match SINGLE_HEADERS.iter().find(has_two) {
        None => next.run(request).await,
        Some(name) => {
            let detail = format!("the header {name} is sent more than once: send it once");
            Problem::new(StatusCode::BAD_REQUEST, "duplicate_header", detail).into_response()
        }
    }
}

/// Refuses requests for an unknown host name, against DNS rebinding: a page from `evil.example` may later resolve that
/// name to this address. Its requests then have the same origin, and only the host name gives them away.
pub(super) async fn check_host(
    State(names): State<Names>,
    request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    let named = named.into_iter().chain(request.uri().authority().map(|at| at.as_str()));
    let stranger = named.map(without_port).find(|name| !names.has(name));
    match stranger {
        Some(name) if !PROBES.contains(&request.uri().path()) => {
            let detail = format!(
                "the host name `{name}` is not allowed: use a numeric address or localhost, or add the name to http.allowed_hosts"
            );
            Problem::new(StatusCode::FORBIDDEN, "unknown_host", detail).into_response()
        }
        _ => next.run(request).await,
    }
}

/// Refuses requests from pages of another origin: on a loopback address, a browser could otherwise send them.
pub(super) async fn refuse_foreign_origin(request: Request, next: Next) -> Response {
    match has_foreign_origin(request.headers()) {
        false => next.run(request).await,
        true => {
            let detail = "web pages of other origins may not call this service: programs leave out the header Origin, and pages send the request through their own server; if this is a page of the service itself, its proxy has to pass on the header Host as the browser sent it";
            Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail).into_response()
        }
    }
}

impl Names {
    pub(super) fn of(config: &Config) -> Self {
        Self(config.names().map(plain).collect())
    }

    /// Accepts numeric addresses, too, because DNS cannot redirect them.
    fn has(&self, host: &str) -> bool {
        let host = plain(host);
        host == "localhost" || is_address(&host) || self.0.contains(&host)
    }
}

/// Returns true if the text is a valid host name for the configuration.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.chars().all(fits)
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_ok()
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // Colons inside the brackets of an IPv6 address do not begin a port.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Normalises a host name: `LOCALHOST.` becomes `localhost`.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn has_foreign_origin(headers: &HeaderMap) -> bool {
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
    fn host_names_are_distinguished_from_addresses_and_foreign_names() {
        let names = Names([plain("Dalsegno.Internal")].into());
        let ours = [
            "localhost",
            "LOCALHOST.:7770",
            "127.0.0.1:7770",
            "127.8.0.1",
            "[::1]:7770",
            "[::1]",
            "10.1.2.3:80",
            "dalsegno.internal:7770",
            "DALSEGNO.internal.",
        ];
        for host in ours {
            assert!(names.has(without_port(host)), "{host}");
        }
        for host in [
            "evil.example:7770",
            "localhost.evil.example",
            "",
            "a@localhost:1",
            "127.0.0.1.nip.io",
            "[::1",
            "::1]",
        ] {
            assert!(!names.has(without_port(host)), "{host}");
        }
        assert!(
            is_name("dalsegno.internal")
                && !is_name("http://x")
                && !is_name("x:80")
                && !is_name("")
        );
    }

    #[test]
    fn only_pages_of_this_service_may_send_requests() {
        assert!(!has_foreign_origin(&headers(None)));
        assert!(!has_foreign_origin(&headers(Some("http://127.0.0.1:7770"))));
        for origin in ["http://evil.example", "null", "", "http://127.0.0.1:7771"] {
            assert!(has_foreign_origin(&headers(Some(origin))), "{origin}");
        }
    }
}
