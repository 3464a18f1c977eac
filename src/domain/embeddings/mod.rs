//! What texts mean, as vectors that a model makes of them: a search finds by them what says the same in other words.
//!
//! ```text
//! an item is published, a fact is written down ──▶ job: what has no vector of the model ──▶ the model ──▶ vectors
//! a question ──▶ the model ──▶ its vector ──▶ what is near to it ─┐
//!                └──▶ its words ────────────▶ what has them ──────┴──▶ one list
//! ```
//!
//! The vectors are rows of the noun that they were made of ([`super::memory`], [`super::facts`]), which has the statements, too.
//!
//! Invariants:
//! - Words alone are enough. Where nobody can say what a question means, or nothing has a vector, the search by words answers.
//! - Both ways have the same conditions: who may read, what holds.
//! - Only vectors of the configured model are compared, and only those of the text as it is now.
//! - The extension `vector` may be missing. No migration needs it, and no statement names its types before `Meaning::statement` has
//!   seen that they are there.

mod fuse;
mod job;
mod meaning;
mod metrics;

use uuid::Uuid;

pub use self::{
    fuse::fuse,
    job::{LANE, MakeEmbeddings, request},
    meaning::{Meaning, is_comparable},
    metrics::{Answered, count, describe},
};

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
