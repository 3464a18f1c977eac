//! Metric of searches by meaning, for alerts.

use metrics::counter;

use crate::metric::Metric;

pub const SEARCHES: Metric = Metric::counter(
    "dalsegno_semantic_searches_total",
    &["outcome"],
    "Searches of this process that asked for the embedding of the question: found, nothing, no_extension, no_model. All but found \
     were answered by full-text search alone.",
);

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
    SEARCHES.describe();
    for answered in [
        SearchResult::Found,
        SearchResult::Nothing,
        SearchResult::NoExtension,
        SearchResult::NoModel,
    ] {
        counter!(SEARCHES.name, "outcome" => answered.as_str()).increment(0);
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
    counter!(SEARCHES.name, "outcome" => answered.as_str()).increment(1);
}
