//! Ids of a trace and a span in the format of W3C Trace Context, version 00.

use std::fmt;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A trace id and a span id, written as `00-<trace>-<span>-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub trace: [u8; 16],
    pub span: [u8; 8],
}

impl Context {
    /// Parses a `traceparent` header. Returns `None` for an invalid one. Later versions may append more fields.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = bytes::<1>(version)?;
        bytes::<1>(flags)?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let context = Self { trace: bytes(trace)?, span: bytes(span)? };
        (context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    /// Makes a new trace and its root span, with random ids.
    pub fn random() -> Self {
        let (trace, span) = (Uuid::new_v4(), Uuid::new_v4());
        Self { trace: trace.into_bytes(), span: first_half(span) }
    }

    /// Makes another span of the same trace.
    pub fn sibling(&self) -> Self {
        Self { span: first_half(Uuid::new_v4()), ..*self }
    }

    /// Derives the root span of a turn from its session and number: the same ids in every process.
    pub fn of_turn(session: Uuid, turn: i32) -> Self {
        let digest = Sha256::new()
            .chain_update(session.as_bytes())
            .chain_update(turn.to_be_bytes())
            .finalize();
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&digest[..16]);
        span.copy_from_slice(&digest[16..24]);
        Self { trace, span }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", hex::encode(self.trace), hex::encode(self.span))
    }
}

fn first_half(id: Uuid) -> [u8; 8] {
    id.as_u64_pair().0.to_be_bytes()
}

/// Decodes lower-case hex; the specification allows no other.
fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if hex.len() != 2 * N || !hex.as_bytes().iter().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_round_trips() {
        let context = Context::parse(HEADER).unwrap();
        assert_eq!(context.to_string(), HEADER);
        assert_eq!(context.sibling().trace, context.trace);
        assert_ne!(context.sibling().span, context.span);
        let later = HEADER.replacen("00", "01", 1) + "-and-more";
        assert_eq!(Context::parse(&later), Some(context));
    }

    #[test]
    fn an_invalid_header_is_ignored() {
        let broken = [
            String::new(),
            "00".to_owned(),
            HEADER.to_uppercase(),
            HEADER.replacen("00", "ff", 1),
            format!("{HEADER}-more"),
            HEADER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            HEADER.replace("00f067aa0ba902b7", &"0".repeat(16)),
            HEADER.replace("4bf9", "4bé"),
            HEADER.replace("-01", ""),
        ];
        for header in broken {
            assert_eq!(Context::parse(&header), None, "{header}");
        }
    }

    #[test]
    fn a_turn_gets_the_same_ids_in_every_process() {
        let session = Uuid::new_v4();
        assert_eq!(Context::of_turn(session, 7), Context::of_turn(session, 7));
        assert_ne!(Context::of_turn(session, 7).trace, Context::of_turn(session, 8).trace);
    }
}
