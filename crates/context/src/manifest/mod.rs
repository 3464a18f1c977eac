//! The record of a call's context: each part, and why it is in or out.
//!
//! Texts are identified by their digest. The tail of the transcript is one line with the chain of its entries' digests.
//! So a manifest is as small after five hundred turns as after ten.

mod kind;
mod ledger;
mod reason;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::ledger::{Ledger, id_of};
pub use self::{
    kind::{Kind, Trust},
    reason::PartReason,
    text::{ContextText, TextKind},
};
use crate::digest::Digest;

/// Version of the rendering. Raised when the rendering of messages, posts or summaries changes; [`crate::replay`] then keeps the old one for
/// the calls that were sent with it. All other texts are stored as they were sent.
pub const RENDERING: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub rendering: u32,
    pub parts: Vec<Part>,
    /// Turns whose messages were left out, because the provider had rejected the prompt of their task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_turns: Vec<i32>,
    /// Last message that a provider which keeps the conversation itself had received before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_to_seq: Option<i64>,
    /// The request as it was sent; `None` for calls of older versions and of providers that send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestHashes>,
    /// Estimated tokens of all sent parts.
    pub estimated_tokens: u64,
    /// Chain of the digests of all sent parts.
    pub sha256: Digest,
}

/// Hashes of a request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHashes {
    /// Digest of the stored text with all fields besides messages and tools.
    pub envelope: Digest,
    /// Digest of the whole request.
    pub sha256: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Digest of the text. The text is stored under it, or follows from rows: messages, posts, a summary. `None` for parts that
    /// were not loaded because they are not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    pub tokens: u64,
    pub sent: bool,
    pub why: PartReason,
    /// Number of posts of each trust level, for the posts of the board.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_trust: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub from_seq: i64,
    pub to_seq: i64,
    /// Number of entries; `None` if they were not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

impl Manifest {
    /// Creates a manifest of these parts, for a call that was not sent yet.
    pub fn new(parts: Vec<Part>, estimated_tokens: u64) -> Self {
        Self {
            rendering: RENDERING,
            estimated_tokens,
            sha256: chain_of_sent(&parts),
            parts,
            without_turns: Vec::new(),
            heard_to_seq: None,
            request: None,
        }
    }

    /// Returns the generation of the summary that the call had.
    pub fn generation(&self) -> Option<i32> {
        let summary = self.parts.iter().find(|part| part.kind == Kind::Summary)?;
        summary.id.as_deref()?.rsplit(' ').next()?.parse().ok()
    }

    /// Records the messages of the session before that this one has not taken over.
    pub fn add_not_inherited(&mut self, span: Span) {
        let is_tail = |part: &Part| part.kind == Kind::Transcript && part.sent;
        let at = self.parts.iter().position(is_tail).unwrap_or(self.parts.len());
        let (kind, why) = (Kind::Transcript, PartReason::NotInherited);
        self.parts.insert(at, Part { span: Some(span), ..Part::new(kind, None, why) });
    }

    /// Names the text under which the rounds are stored, where the transcript does not have them as they were sent.
    pub fn set_rounds(&mut self, list: Digest) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.kind == Kind::Rounds) {
            part.sha256 = Some(list);
        }
        self.sha256 = chain_of_sent(&self.parts);
    }
}

impl Part {
    /// Creates a part that is not sent.
    pub fn new(kind: Kind, id: Option<String>, why: PartReason) -> Self {
        let by_trust = BTreeMap::new();
        Self { kind, id, span: None, sha256: None, tokens: 0, sent: false, why, by_trust }
    }
}

fn chain_of_sent(parts: &[Part]) -> Digest {
    let sent = parts.iter().filter(|part| part.sent);
    Digest::chain(sent.filter_map(|part| part.sha256))
}
