//! The HTTP client for calls of other services, and the waits that they ask for.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use reqwest::{
    Client, ClientBuilder, Url,
    header::{DATE, HeaderMap, HeaderName, RETRY_AFTER},
    redirect,
};

/// Upper limit of a server's `Retry-After`: a server may name any wait, and a job should not be parked for a day.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Builds a client that follows no redirects. `url` is the address of its calls, if there is only one.
pub fn client(url: Option<&Url>) -> ClientBuilder {
    // Fails where the process already has a crypto provider, which is then used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("dalsegno/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none());
    match url.map(Url::scheme) {
        // Without this the client looks for the system's certificates, and fails in an image without them.
        Some("http") => builder.tls_certs_only([]),
        _ => builder,
    }
}

/// Reads `Retry-After`, given in seconds or as a date, up to an hour. A date is compared with the server's own `Date`;
/// without `Date` it is ignored.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(secs) => Duration::from_secs(secs),
        Err(_) => {
            let left = date(text)? - date_of(headers, DATE)?;
            left.to_std().unwrap_or_default()
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<DateTime<FixedOffset>> {
    date(headers.get(name)?.to_str().ok()?)
}

/// Parses a date such as `Sun, 22 Nov 2026 08:00:00 GMT`.
fn date(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc2822(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn wait(retry_after_text: &'static str, date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after_text));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        retry_after(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_takes_seconds_or_a_date_and_is_capped_at_an_hour() {
        let now = Some("Sun, 22 Nov 2026 08:00:00 GMT");
        assert_eq!(wait("42", None), Some(42));
        assert_eq!(wait("99999999", None), Some(3600));
        assert_eq!(wait("Sun, 22 Nov 2026 08:01:30 GMT", now), Some(90));
        assert_eq!(wait("Mon, 23 Nov 2026 08:01:30 GMT", now), Some(3600));
        assert_eq!(wait("Sun, 22 Nov 2026 07:00:00 GMT", now), Some(0), "the wait has ended");
        assert_eq!(wait("Sun, 22 Nov 2026 08:01:30 GMT", None), None, "the duration is unknown");
        assert_eq!(wait("soon", now), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
