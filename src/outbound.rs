//! What all calls of other services have in common, whoever makes them.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use reqwest::{
    Client, ClientBuilder, Url,
    header::{DATE, HeaderMap, HeaderName, RETRY_AFTER},
    redirect,
};

/// A server may ask for any wait; nothing is parked for a day because of it.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// A client that follows no redirect: it calls whom it was told to call. `url` is where it will call, if that is one place.
pub fn client(url: Option<&Url>) -> ClientBuilder {
    // Fails where the process already has a provider, which is then used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("dalsegno/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none());
    match url.map(Url::scheme) {
        // Otherwise the client looks for the system's certificates, and fails in an image that has none.
        Some("http") => builder.tls_certs_only([]),
        _ => builder,
    }
}

/// How long the server asks to wait, up to an hour: in seconds, or until a date. The date is compared with the server's own
/// clock, where it says the time; otherwise it is not used.
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

/// `Sun, 22 Nov 2026 08:00:00 GMT`.
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
    fn a_server_asks_to_wait_in_seconds_or_until_a_date_and_for_an_hour_at_most() {
        let now = Some("Sun, 22 Nov 2026 08:00:00 GMT");
        assert_eq!(wait("42", None), Some(42));
        assert_eq!(wait("99999999", None), Some(3600));
        assert_eq!(wait("Sun, 22 Nov 2026 08:01:30 GMT", now), Some(90));
        assert_eq!(wait("Mon, 23 Nov 2026 08:01:30 GMT", now), Some(3600));
        assert_eq!(wait("Sun, 22 Nov 2026 07:00:00 GMT", now), Some(0), "it is over");
        assert_eq!(wait("Sun, 22 Nov 2026 08:01:30 GMT", None), None, "it is not known how long");
        assert_eq!(wait("soon", now), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
