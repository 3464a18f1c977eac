//! SHA-256 digests of sent texts, so that a manifest can prove them without repeating them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::transcript::{Message, Role};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Hashes a message. Each field is preceded by its length, so that no two messages share a byte stream.
    pub fn of_message(message: &Message) -> Self {
        let mut hasher = Sha256::new();
        hasher.update([role_code(message.role)]);
        put(&mut hasher, &message.text);
        for call in &message.tool_calls {
            hasher.update(b"call");
            put(&mut hasher, &call.id);
            put(&mut hasher, &call.name);
            put(&mut hasher, &call.arguments.to_string());
            if let Some(thinking) = &call.thinking {
                hasher.update(b"thnk");
                put(&mut hasher, &thinking.to_string());
            }
        }
        for (tag, field) in [(b"answ", &message.tool_call_id), (b"tool", &message.tool_name)] {
            if let Some(value) = field {
                hasher.update(tag);
                put(&mut hasher, value);
            }
        }
        Self(hasher.finalize().into())
    }

    /// Returns one digest for a sequence, sensitive to order. Hashes 32 bytes per item, however long the items are.
    pub fn chain(items: impl IntoIterator<Item = Self>) -> Self {
        let mut hasher = Sha256::new();
        for item in items {
            hasher.update(item.0);
        }
        Self(hasher.finalize().into())
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_hex(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom("a SHA-256 digest is 64 hexadecimal digits"))
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::System => b's',
        Role::User => b'u',
        Role::Assistant => b'a',
        Role::Tool => b't',
        Role::Notice => b'n',
        Role::Posts => b'p',
    }
}

fn put(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_json_form() {
        let digest = Digest::of("segno");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"beef\"").is_err());
    }

    #[test]
    fn a_digest_chain_depends_on_its_order() {
        let (a, b) = (Digest::of("a"), Digest::of("b"));
        assert_ne!(Digest::chain([a, b]), Digest::chain([b, a]));
    }
}
