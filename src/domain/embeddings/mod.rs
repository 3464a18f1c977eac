//! Embeddings: vectors that a model makes of texts, by which a search finds what says the same in other words ([`super::search`]).
//!
//! ```text
//! an item is published, a fact is recorded ──▶ job: rows without a vector of the model ──▶ the model ──▶ vectors
//! ```
//!
//! The vectors are rows of the noun that they were made of ([`super::memory`], [`super::facts`]), which has the statements, too. Only
//! vectors of the configured model count, and only those of the text as it is now.

mod job;

use uuid::Uuid;

pub use self::job::{LANE, MakeEmbeddings, request};

/// How much of a text its vector is made of: most models that make them read no more, and what stands behind it is found by its words.
pub const TEXT_MAX_CHARS: i32 = 2_000;

/// Something that has no vector yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmade {
    pub id: Uuid,
    /// Of an item; a fact has one only.
    pub version: i32,
    pub text: String,
}

/// Its vector. Empty where the model refuses the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub id: Uuid,
    pub version: i32,
    pub vector: Vec<f32>,
}

impl Unmade {
    pub fn made(&self, vector: Vec<f32>) -> Made {
        Made { id: self.id, version: self.version, vector }
    }
}
