//! The elements that carry foreign text into a prompt.
//!
//! Two safeguards, each sufficient alone:
//! - Escaping: no `<`, `>` or `&` of a foreign text reaches the model as markup. So it can neither close nor open an
//!   element of ours, nor spell a chat template's control token such as `<|im_start|>`.
//! - The fence: every outermost element of ours carries a nonce that foreign authors cannot know. Text that looks like
//!   one of our elements but lacks the nonce is only text.
//!
//! Escaping loses nothing: `parse` returns the original, control characters included.

mod escape;
#[cfg(any(test, feature = "test-fakes"))]
pub mod parse;

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use escape::{escape_text, unescape};

/// The session's secret from which its fences are derived. Models and tools never see the seed. People who may read the exact context of a
/// call see its fences there, and then escaping alone protects.
#[derive(Clone, PartialEq, Eq)]
pub struct FenceSeed([u8; 32]);

/// The purpose of a fence. The same scope always has the same fence, so that a resent history is identical byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    System,
    Summary {
        generation: u32,
    },
    Entry(Uuid),
    /// The elements that a turn adds around its task, by the id of the task's entry.
    Turn(Uuid),
    /// The input of a summariser.
    Folding {
        to_seq: i64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence(String);

/// An element. Names of elements and attributes are static; only values can be foreign.
#[derive(Debug, Clone)]
pub struct Element<'a> {
    name: &'static str,
    attributes: Vec<(&'static str, Cow<'a, str>)>,
    body: Body<'a>,
}

impl std::fmt::Debug for FenceSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FenceSeed(secret)")
    }
}

impl FenceSeed {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn fence(&self, scope: Scope) -> Fence {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        match scope {
            Scope::System => hasher.update(b"system"),
            Scope::Summary { generation } => {
                hasher.update(b"summary");
                hasher.update(generation.to_be_bytes());
            }
            Scope::Entry(id) => {
                hasher.update(b"entry");
                hasher.update(id.as_bytes());
            }
            Scope::Turn(id) => {
                hasher.update(b"turn");
                hasher.update(id.as_bytes());
            }
            Scope::Folding { to_seq } => {
                hasher.update(b"folding");
                hasher.update(to_seq.to_be_bytes());
            }
        }
        let bytes: [u8; 32] = hasher.finalize().into();
        Fence(bytes[..6].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Stands for the fence in an open text. Foreign texts never contain it: it is escaped.
const OPEN_FENCE: char = '\u{1}';

impl Fence {
    /// The fence of an open text, which is stored once for all sessions: [`close`] puts the fence of a session in its place.
    pub fn open() -> Self {
        Self(OPEN_FENCE.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Removes the fences of elements, open or not, for a reader who is a person.
pub fn without_fence(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, fenced)) = rest.split_once(" fence=\"") {
        out.push_str(before);
        rest = fenced.split_once('"').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// Puts a fence into an open text.
pub fn close(open: &str, fence: &Fence) -> String {
    open.replace(OPEN_FENCE, &fence.0)
}

impl<'a> Element<'a> {
    pub fn with_text(name: &'static str, text: impl Into<Cow<'a, str>>) -> Self {
        Self::with_body(name, Body::Text(text.into()))
    }

    pub fn with_children(name: &'static str, children: Vec<Element<'a>>) -> Self {
        Self::with_body(name, Body::Children(children))
    }

    #[must_use]
    pub fn attribute(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    pub fn render(&self, fence: &Fence) -> String {
        let mut out = String::new();
        self.write_open(&mut out, Some(fence));
        self.write_rest(&mut out);
        out
    }

    /// Renders the element in one piece per child; joined, they are what [`Self::render`] returns.
    pub fn render_pieces(&self, fence: &Fence) -> Vec<String> {
        let Body::Children(children) = &self.body else { return vec![self.render(fence)] };
        let mut piece = String::new();
        self.write_open(&mut piece, Some(fence));
        piece.push('\n');
        let mut pieces = Vec::with_capacity(children.len().max(1));
        for (at, child) in children.iter().enumerate() {
            if at > 0 {
                pieces.push(std::mem::take(&mut piece));
            }
            child.write_as_child(&mut piece);
        }
        self.write_close(&mut piece);
        pieces.push(piece);
        pieces
    }

    fn with_body(name: &'static str, body: Body<'a>) -> Self {
        Self { name, attributes: Vec::new(), body }
    }

    /// Writes the opening tag. The fence comes first, so that no attribute value can precede it.
    fn write_open(&self, out: &mut String, fence: Option<&Fence>) {
        out.push('<');
        out.push_str(self.name);
        if let Some(fence) = fence {
            out.push_str(" fence=\"");
            out.push_str(fence.as_str());
            out.push('"');
        }
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape::push_attribute(out, value);
            out.push('"');
        }
        out.push('>');
    }

    fn write_rest(&self, out: &mut String) {
        match &self.body {
            Body::Text(text) => escape::push_text(out, text),
            Body::Children(children) => {
                out.push('\n');
                for child in children {
                    child.write_as_child(out);
                }
            }
        }
        self.write_close(out);
    }

    fn write_as_child(&self, out: &mut String) {
        self.write_open(out, None);
        self.write_rest(out);
        out.push('\n');
    }

    fn write_close(&self, out: &mut String) {
        out.push_str("</");
        out.push_str(self.name);
        out.push('>');
    }
}

#[derive(Debug, Clone)]
enum Body<'a> {
    Text(Cow<'a, str>),
    Children(Vec<Element<'a>>),
}
