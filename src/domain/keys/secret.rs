//! The text of a key: `dals_<handle>_<secret>`. Scanners for leaked secrets find it by its prefix.
//!
//! The secret has 256 random bits, so that a plain hash is safe without a salt.

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of every key.
pub const PREFIX: &str = "dals_";
const HANDLE_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// SHA-256 of a key's text.
pub type Digest = [u8; 32];

pub(super) struct Fresh {
    pub(super) handle: String,
    pub(super) text: SecretString,
    pub(super) digest: Digest,
}

pub(super) fn fresh() -> Fresh {
    // Both come from the thread's generator, which is made for secrets and seeded by the system.
    let handle = hex(&rand::random::<[u8; HANDLE_BYTES]>());
    let text = format!("{PREFIX}{handle}_{}", hex(&rand::random::<[u8; SECRET_BYTES]>()));
    Fresh { handle, digest: digest(&text), text: text.into() }
}

pub fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares two digests in constant time.
pub fn is_same(a: &Digest, b: &Digest) -> bool {
    a.ct_eq(b).into()
}

/// Returns the handle in a key's text; `None` if the text does not have the form of a key.
pub fn handle(text: &str) -> Option<&str> {
    let (handle, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let fits = handle.len() == 2 * HANDLE_BYTES && secret.len() == 2 * SECRET_BYTES;
    (fits && is_hex(handle) && is_hex(secret)).then_some(handle)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_new_key_has_the_expected_form_and_is_unique() {
        let (one, other) = (fresh(), fresh());
        let text = one.text.expose_secret();
        assert_eq!((text.len(), handle(text)), (82, Some(one.handle.as_str())));
        assert_eq!(one.digest, digest(text));
        assert!(is_same(&one.digest, &digest(text)) && !is_same(&one.digest, &other.digest));
        assert_ne!(text, other.text.expose_secret());
        assert!(!format!("{:?}", one.text).contains(&text[20..]));
    }

    #[test]
    fn a_malformed_key_is_never_looked_up() {
        let secret = "0".repeat(64);
        for text in [
            String::new(),
            "dals_".to_owned(),
            format!("dals_0123456789ab_{}", &secret[1..]),
            format!("dals_0123456789aB_{secret}"),
            format!("dals_0123456789ab-{secret}"),
            format!("sk_0123456789ab_{secret}"),
            format!("dals_0123456789ab_{secret}0"),
        ] {
            assert_eq!(handle(&text), None, "{text}");
        }
    }
}
