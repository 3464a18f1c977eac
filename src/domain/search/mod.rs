//! Search: full-text, and by meaning where a model makes embeddings; ranked together.
//!
//! ```text
//! question ──▶ all of its words, else any ──▶ rows that have them ───┐
//!     └──▶ its vector ──▶ rows whose vectors are near ───────────────┴──▶ one ranked list of ids
//! ```
//!
//! The rows belong to a noun ([`super::memory`], [`super::facts`]), which names its table and the condition under which a row may be found
//! (`Searchable`). It reads the rows of the list itself.
//!
//! Invariants:
//! - Words alone are enough. Without a vector of the question, or of any row, the full-text search answers.
//! - Both ways have the same conditions: the reader's access, and validity.
//! - The extension `vector` may be missing. No migration needs it, and no statement names its types before [`is_comparable`] has
//!   found them.

mod fuse;
mod meaning;
mod metrics;
mod question;
mod words;

use sqlx::PgConnection;

use self::fuse::fuse;
pub(super) use self::{meaning::NearQuery, question::is_plain, words::by_words};
pub use self::{
    meaning::{QueryEmbedding, is_comparable},
    metrics::{SEARCHES, SearchResult, count, describe},
    question::{LIMITS, Question, needs_meaning},
    words::{RankedRow, WordQuery},
};
use super::StatementError;

/// The rows of one scope, of which a search lists the ids.
pub(super) trait Searchable {
    /// The tables of a row `i` and of its vector `e`, and the condition under which it may be found: `… as e join … as i on … where …`.
    /// Its parameters begin with `$5`.
    const NEAR: &'static str;

    /// Binds the parameters of [`Self::NEAR`].
    fn bind<'q>(&'q self, query: NearQuery<'q>) -> NearQuery<'q>;

    /// Finds rows by [`by_words!`], under the same condition.
    fn by_words(
        &self,
        conn: &mut PgConnection,
        query: WordQuery<'_>,
    ) -> impl Future<Output = Result<Vec<RankedRow>, StatementError>> + Send;
}

/// Lists the rows with all words of a question, or with any of them if none has all, and the rows of similar meaning. The best first.
pub(super) async fn search(
    conn: &mut PgConnection,
    rows: &impl Searchable,
    question: Question<'_>,
) -> Result<Vec<RankedRow>, StatementError> {
    let mut found = Vec::new();
    for query in question.word_queries() {
        found = rows.by_words(&mut *conn, query).await?;
        if !found.is_empty() {
            break;
        }
    }
    let Some(meaning) = question.comparable_meaning() else { return Ok(found) };
    let near = meaning.nearest(conn, rows, question.limit).await?;
    Ok(fuse(found, &near, usize::try_from(question.limit).unwrap_or(0)))
}

/// Sorts rows by rank and pairs each with its hit. Rows that were removed meanwhile are left out.
pub(super) fn sort_by_rank<T>(
    found: Vec<RankedRow>,
    mut rows: Vec<T>,
    id: impl Fn(&T) -> uuid::Uuid,
) -> impl Iterator<Item = (T, RankedRow)> {
    found.into_iter().filter_map(move |ranked| {
        let at = rows.iter().position(|row| id(row) == ranked.id)?;
        Some((rows.swap_remove(at), ranked))
    })
}
