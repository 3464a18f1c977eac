//! The question of a search, and its operators.

use super::{Meaning, WordQuery};
use crate::domain::text::{self, Error};

/// The longest question.
const MAX_BYTES: usize = 1000;

/// A question, and how much is listed for it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Words; `"in this order"`, `or` and `-without` are operators, as in search engines.
    pub words: &'a str,
    pub limit: i64,
    /// `None`: words alone are searched. Ignored beside operators, which ask for exactly what they say.
    pub meaning: Option<&'a Meaning>,
}

impl<'a> Question<'a> {
    /// Refuses a question that is too long, or says only what is not wanted.
    pub(in crate::domain) fn check(&self) -> Result<(), Error> {
        text::check("question", self.words, MAX_BYTES)?;
        if asks_for_a_word(self.words) { Ok(()) } else { Err(Error::NoWords) }
    }

    /// The queries to try, one after the other, until one finds something. With a word that must not be there, any of the other words are
    /// no answer.
    pub(super) fn word_queries(&self) -> impl Iterator<Item = WordQuery<'a>> + use<'a> {
        let Self { words, limit, .. } = *self;
        let is_plain = is_plain(words);
        let forbids_a_word = words.split_whitespace().any(|word| word.starts_with('-'));
        [true, false]
            .into_iter()
            .filter(move |needs_all| *needs_all || !forbids_a_word)
            .map(move |needs_all| WordQuery { words, needs_all, is_plain, limit })
    }

    pub(super) fn comparable_meaning(&self) -> Option<&'a Meaning> {
        self.meaning.filter(|_| is_plain(self.words))
    }
}

/// True if a question is also searched by meaning, which costs a call of the embedding model.
pub fn needs_meaning(words: &str) -> bool {
    asks_for_a_word(words) && is_plain(words) && words.len() <= MAX_BYTES
}

/// True if each alternative of a question names a word to find. Exclusions alone match most rows, and all of them would be ranked.
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

/// True for a question without operators. Its words may be looked for one by one, and rows that say the same in other words count as
/// hits.
fn is_plain(question: &str) -> bool {
    let is_operator =
        |word: &str| word.starts_with('-') || word.contains('"') || word.eq_ignore_ascii_case("or");
    !question.split_whitespace().any(is_operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_only_says_what_is_not_wanted_asks_for_nothing() {
        for question in ["bergen", "bergen -rain", "bergen or porto", "\"a or -b\"", "or bergen"] {
            assert!(asks_for_a_word(question), "{question}");
        }
        for question in ["-bergen", "-bergen -rain", "bergen or -porto", "-\"a b\"", "…", "or", ""]
        {
            assert!(!asks_for_a_word(question), "{question}");
        }
    }
}
