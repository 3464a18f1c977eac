//! Metric of searches by meaning, for alerts.

use metrics::{Unit, counter, describe_counter};

const SEARCHES: &str = "dalsegno_searches_by_meaning_total";

/// The result of a search by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchResult {
    Found,
    /// No row has a vector, or none is near enough.
    Nothing,
    /// The extension is missing.
    NoExtension,
    /// The model is missing or timed out.
    NoModel,
}

/// Describes the metric and initializes it to 0.
pub fn describe() {
    let words = "Searches of this process for which the meaning of the question was asked, by result: found, nothing, no_extension, \
                 no_model. All but the first were answered by words alone.";
    describe_counter!(SEARCHES, Unit::Count, words);
    for answered in [
        SearchResult::Found,
        SearchResult::Nothing,
        SearchResult::NoExtension,
        SearchResult::NoModel,
    ] {
        counter!(SEARCHES, "result" => answered.as_str()).increment(0);
    }
}

impl SearchResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Nothing => "nothing",
            Self::NoExtension => "no_extension",
            Self::NoModel => "no_model",
        }
    }
}

pub fn count(answered: SearchResult) {
    counter!(SEARCHES, "result" => answered.as_str()).increment(1);
}
