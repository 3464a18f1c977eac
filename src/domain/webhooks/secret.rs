//! Secrets of webhooks and the signatures made with them: `webhook-id`, `webhook-timestamp` and `webhook-signature` of the Standard
//! Webhooks specification.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::StatementError;

/// A secret: `whsec_` and the key in base64. Its `Debug` output hides it.
#[derive(Debug, Clone)]
pub struct Secret(SecretString);

/// Headers of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Headers {
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) signature: String,
}

/// The error for a stored secret in a wrong format, which was written with SQL.
#[derive(Debug, thiserror::Error)]
#[error(
    "a secret of webhook {0} is not valid, because it must be `whsec_` and base64: replace it with `dalsegno webhook rotate {0}`"
)]
pub struct Undecodable(pub Uuid);

const PREFIX: &str = "whsec_";
/// The specification asks for 24 to 64.
const KEY_BYTES: usize = 32;

impl Secret {
    pub fn generate() -> Self {
        let key: [u8; KEY_BYTES] = rand::random();
        Self(format!("{PREFIX}{}", STANDARD.encode(key)).into())
    }

    /// Takes a secret as it was written. It is checked when it signs.
    pub fn from_text(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one response that shows it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    fn key(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.expose().strip_prefix(PREFIX)?).ok()
    }

    fn sign(&self, id: &str, timestamp: &str, body: &str) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key()?).ok()?;
        for part in [id, ".", timestamp, ".", body] {
            mac.update(part.as_bytes());
        }
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl Headers {
    /// Signs with each secret. `None`: one of them is invalid.
    pub(super) fn of(id: Uuid, at: DateTime<Utc>, body: &str, secrets: &[Secret]) -> Option<Self> {
        let (id, timestamp) = (id.to_string(), at.timestamp().to_string());
        let signatures = secrets.iter().map(|secret| secret.sign(&id, &timestamp, body));
        let signatures: Vec<String> = signatures.collect::<Option<_>>()?;
        Some(Self { id, timestamp, signature: signatures.join(" ") })
    }
}

/// Makes and stores a secret for a webhook.
pub(super) async fn store(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Secret, StatementError> {
    let secret = Secret::generate();
    sqlx::query!(
        "insert into dalsegno.webhook_secrets (webhook_id, created_at, secret) values ($1, $2, $3)",
        webhook_id,
        now,
        secret.expose(),
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("store the secret of a webhook"))?;
    Ok(secret)
}

/// Lets the current secret of a webhook expire at `until`. Removes secrets that expire already.
pub(super) async fn retire(
    conn: &mut PgConnection,
    webhook_id: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    // At most two secrets at once: an earlier rotation ends now.
    sqlx::query!(
        "delete from dalsegno.webhook_secrets where webhook_id = $1 and (valid_until is not null or $2::timestamptz <= $3)",
        webhook_id,
        until,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("remove old secrets of a webhook"))?;
    sqlx::query!(
        "update dalsegno.webhook_secrets set valid_until = $2 where webhook_id = $1",
        webhook_id,
        until,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("set the expiry of a webhook's secret"))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn a_signature_matches_the_specification() {
        // The example of the specification's reference libraries.
        let secret = Secret::from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signed =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn two_secrets_sign_together_and_are_not_printed() {
        let secrets = [Secret::generate(), Secret::generate()];
        let at = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
        let headers = Headers::of(Uuid::nil(), at, "{}", &secrets).unwrap();
        assert_eq!(headers.timestamp, at.timestamp().to_string());
        assert_eq!(headers.signature.split(' ').count(), 2);
        assert!(secrets[0].expose().len() == "whsec_".len() + 44);
        assert!(!format!("{secrets:?}").contains("whsec_"), "{secrets:?}");
        assert_eq!(
            Headers::of(Uuid::nil(), at, "{}", &[Secret::from_text("whsec_?".to_owned())]),
            None
        );
    }
}
