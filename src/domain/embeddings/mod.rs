//! Embeddings: vectors that a model makes of texts. A search finds texts of the same meaning in other words by them ([`super::search`]).
//!
//! ```text
//! an item is published, a fact is recorded ──▶ job: rows without a vector of the model ──▶ the model ──▶ vectors
//! ```
//!
//! The vectors are rows of the noun whose text they represent ([`super::memory`], [`super::facts`]). The modules of these nouns have the
//! statements. Only vectors of the configured model and of the current text are used.

mod job;

use uuid::Uuid;

pub use self::job::{LANE, MakeEmbeddings, request};

/// Characters of a text that its vector is made of. Most embedding models read no more; full-text search finds the rest.
pub const TEXT_MAX_CHARS: i32 = 2_000;

/// An item or a fact without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingText {
    pub id: Uuid,
    /// The version of an item. A fact has only one.
    pub version: i32,
    pub text: String,
}

/// The vector of an item or a fact. Empty if the model refuses the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub id: Uuid,
    pub version: i32,
    pub vector: Vec<f32>,
}

impl PendingText {
    pub fn with_vector(&self, vector: Vec<f32>) -> Embedding {
        Embedding { id: self.id, version: self.version, vector }
    }
}
