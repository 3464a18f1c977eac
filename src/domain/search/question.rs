//! The question of a search, and its operators.

use super::{QueryEmbedding, WordQuery};
use crate::domain::{
    limits::{LimitEffect::Refused, LimitEntry},
    text::{self, Error},
};

/// The longest question.
const MAX_BYTES: usize = 1000;

pub const LIMITS: &[LimitEntry] = &[LimitEntry::fixed(
    "bytes of the words of a search",
    MAX_BYTES as u64,
    Refused(Error::TOO_LONG.code),
)];

/// A search query and the number of results.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Words; `"in this order"`, `or` and `-without` are operators, as in search engines.
    pub words: &'a str,
    pub limit: i64,
    /// The embedding. `None`: full-text search only. Ignored if the question has operators, which ask for exact matches.
    pub meaning: Option<&'a QueryEmbedding>,
}

impl<'a> Question<'a> {
    /// Refuses a question that is too long or consists of exclusions only.
    pub(in crate::domain) fn check(&self) -> Result<(), Error> {
        text::check("search text", self.words, MAX_BYTES)?;
        if asks_for_a_word(self.words) { Ok(()) } else { Err(Error::NoWords) }
    }

    /// Returns the queries to try in order until one has results. A question with an exclusion is not retried with any of its words.
    pub(super) fn word_queries(&self) -> impl Iterator<Item = WordQuery<'a>> + use<'a> {
        let Self { words, limit, .. } = *self;
        let is_plain = is_plain(words);
        let forbids_a_word = words.split_whitespace().any(|word| word.starts_with('-'));
        [true, false]
            .into_iter()
            .filter(move |needs_all| *needs_all || !forbids_a_word)
            .map(move |needs_all| WordQuery { words, needs_all, is_plain, limit })
    }

    pub(super) fn comparable_meaning(&self) -> Option<&'a QueryEmbedding> {
        self.meaning.filter(|_| is_plain(self.words))
    }
}

/// Returns true if a question is also searched by meaning, which costs a call of the embedding model.
pub fn needs_meaning(words: &str) -> bool {
    asks_for_a_word(words) && is_plain(words) && words.len() <= MAX_BYTES
}

/// Returns true if each alternative of a question names a word to find. Exclusions alone match most rows, and all of them would be
/// ranked.
fn asks_for_a_word(question: &str) -> bool {
    let parts = question.split('"').enumerate();
    let unquoted: String =
        parts.map(|(at, part)| if at % 2 == 1 { "quoted" } else { part }).collect();
    let words: Vec<&str> = unquoted.split_whitespace().collect();
    let alternatives = words.split(|word| word.eq_ignore_ascii_case("or"));
    let is_wanted = |word: &&str| !word.starts_with('-') && word.contains(char::is_alphanumeric);
    let mut said = alternatives.filter(|words| !words.is_empty()).peekable();
    said.peek().is_some() && said.all(|words| words.iter().any(is_wanted))
}

/// Returns true for a question without operators. Then any of its words, and rows of similar meaning, count as hits.
pub(in crate::domain) fn is_plain(question: &str) -> bool {
    let is_operator =
        |word: &str| word.starts_with('-') || word.contains('"') || word.eq_ignore_ascii_case("or");
    !question.split_whitespace().any(is_operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_exclusions_alone_matches_nothing() {
        for question in ["bergen", "bergen -rain", "bergen or porto", "\"a or -b\"", "or bergen"] {
            assert!(asks_for_a_word(question), "{question}");
        }
        for question in ["-bergen", "-bergen -rain", "bergen or -porto", "-\"a b\"", "…", "or", ""]
        {
            assert!(!asks_for_a_word(question), "{question}");
        }
    }
}
