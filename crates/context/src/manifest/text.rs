//! Stored texts of contexts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Kind;
use crate::digest::Digest;

/// Kind of a stored text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextKind {
    Part(Kind),
    /// All fields of a request besides messages and tools.
    Envelope,
    /// The system text of a call beside turns.
    Instructions,
    /// A piece of the prompt of a call beside turns.
    Prompt,
}

/// A text of a context that no row holds, so it is stored by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextText {
    pub kind: TextKind,
    /// The row it was made from, if its removal has to remove the text.
    pub source: Option<Uuid>,
    pub sha256: Digest,
    /// Open: see [`crate::xml::Fence::open`].
    pub text: Arc<str>,
}

impl ContextText {
    pub fn of_part(kind: Kind, text: impl Into<Arc<str>>) -> Self {
        Self::new(TextKind::Part(kind), text)
    }

    pub fn new(kind: TextKind, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { kind, source: None, sha256: Digest::of(&text), text }
    }
}

impl TextKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Part(kind) => kind.as_str(),
            Self::Envelope => "envelope",
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
        }
    }
}
