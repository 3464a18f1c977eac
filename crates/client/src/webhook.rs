//! Verification of webhooks, which are signed as Standard Webhooks describes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, Utc};
use reqwest::header::HeaderMap;
use ring::hmac;
use serde::Deserialize;
use serde_json::Value;

use super::error::now;

/// Longest difference between the time of a message and the clock of this machine.
const TOLERANCE_SECS: u64 = 300;

/// A genuine message of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WebhookEvent {
    /// The same in all attempts and replays of a delivery.
    #[serde(skip)]
    pub id: String,
    /// Kind of the message, such as `task.done`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time of the event. Deliveries can arrive in another order.
    pub timestamp: DateTime<Utc>,
    pub data: Value,
}

/// The reason why a message is not accepted. Answer it with 401.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(
        "the header {0} is missing or invalid: the message does not come from this service, or a proxy does not pass the header on"
    )]
    Header(&'static str),
    #[error("webhook-timestamp is more than 300 s off: check the clock of this machine")]
    Time,
    #[error(
        "invalid webhook secret: it is `whsec_` and Base64, as `dalsegno webhook add` prints it"
    )]
    Secret,
    #[error(
        "webhook-signature does not match: check the secret, and pass the body as it was received"
    )]
    Signature,
    #[error("this version of the client cannot read the message")]
    Body(#[source] serde_json::Error),
}

const TIMESTAMP: &str = "webhook-timestamp";

/// Returns the event of a genuine message. `body` has to be the raw bytes. While a secret is rotated, pass both secrets: the message has to match
/// one of them.
pub fn verify_webhook(
    body: &[u8],
    headers: &HeaderMap,
    secrets: &[&str],
) -> Result<WebhookEvent, WebhookError> {
    verify_at(body, headers, secrets, now())
}

fn verify_at(
    body: &[u8],
    headers: &HeaderMap,
    secrets: &[&str],
    now: DateTime<Utc>,
) -> Result<WebhookEvent, WebhookError> {
    let header = |name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.ok_or(WebhookError::Header(name))
    };
    let (id, signatures) = (header("webhook-id")?, header("webhook-signature")?);
    let timestamp = header(TIMESTAMP)?;
    let sent: i64 = timestamp.parse().map_err(|_| WebhookError::Header(TIMESTAMP))?;
    if now.timestamp().abs_diff(sent) > TOLERANCE_SECS {
        return Err(WebhookError::Time);
    }
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    let given = signatures.split_whitespace().filter_map(|part| part.strip_prefix("v1,"));
    let given: Vec<Vec<u8>> = given.filter_map(|part| BASE64_STANDARD.decode(part).ok()).collect();
    let (mut is_genuine, mut is_secret) = (false, true);
    for secret in secrets {
        let Ok(key) = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret))
        else {
            is_secret = false;
            continue;
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        // Compares in constant time.
        is_genuine |= given.iter().any(|tag| hmac::verify(&key, &signed, tag).is_ok());
    }
    match (is_genuine, is_secret) {
        (true, _) => {}
        (false, true) => return Err(WebhookError::Signature),
        (false, false) => return Err(WebhookError::Secret),
    }
    let event: WebhookEvent = serde_json::from_slice(body).map_err(WebhookError::Body)?;
    Ok(WebhookEvent { id: id.to_owned(), ..event })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] =
        br#"{"type":"task.done","timestamp":"2026-11-20T12:00:00Z","data":{"task_id":"1"}}"#;
    const SECRET: &str = "whsec_YSBrZXkgb2YgZXhhY3RseSB0aGlydHktdHdvIGJ5dGU=";

    fn headers(timestamp: &str, secret: &str) -> HeaderMap {
        let key = BASE64_STANDARD.decode(&secret["whsec_".len()..]).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let signed = [format!("msg_1.{timestamp}.").as_bytes(), BODY].concat();
        let signature = BASE64_STANDARD.encode(hmac::sign(&key, &signed));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", "msg_1".to_owned()),
            ("webhook-timestamp", timestamp.to_owned()),
            ("webhook-signature", format!("v1,AAAA v1,{signature}")),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_recent_messages_that_are_signed_with_the_secret_are_genuine() {
        let now: DateTime<Utc> = "2026-11-20T12:00:00Z".parse().unwrap();
        let at = |secs: i64| (now.timestamp() + secs).to_string();
        let check = |body: &[u8], headers: &HeaderMap, secrets: &[&str]| {
            verify_at(body, headers, secrets, now)
        };
        let genuine = headers(&at(-300), SECRET);
        let event = check(BODY, &genuine, &["whsec_b3RoZXI=", SECRET]).unwrap();
        assert_eq!((event.id.as_str(), event.kind.as_str()), ("msg_1", "task.done"));
        assert_eq!((event.timestamp, &event.data["task_id"]), (now, &"1".into()));

        check(BODY, &genuine, &["whsec_?", SECRET]).unwrap();

        let refused = |body: &[u8], headers: &HeaderMap, secrets: &[&str]| {
            check(body, headers, secrets).unwrap_err()
        };
        let other = [BODY, &b" "[..]].concat();
        assert!(matches!(refused(&other, &genuine, &[SECRET]), WebhookError::Signature));
        assert!(matches!(refused(BODY, &genuine, &["whsec_b3RoZXI="]), WebhookError::Signature));
        assert!(matches!(refused(BODY, &genuine, &[]), WebhookError::Signature));
        assert!(matches!(refused(BODY, &genuine, &["whsec_?"]), WebhookError::Secret));
        for secs in [-301, 301] {
            let old = headers(&at(secs), SECRET);
            assert!(matches!(refused(BODY, &old, &[SECRET]), WebhookError::Time), "{secs}");
        }
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            let mut without = genuine.clone();
            without.remove(name);
            assert!(
                matches!(refused(BODY, &without, &[SECRET]), WebhookError::Header(it) if it == name),
                "{name}"
            );
        }
    }
}
