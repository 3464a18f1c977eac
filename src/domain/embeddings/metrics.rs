//! How often meaning takes part in searches, for alerts.

use metrics::{Unit, counter, describe_counter};

const SEARCHES: &str = "dalsegno_searches_by_meaning_total";

/// What meaning had to say to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Found,
    /// Nothing has a vector, or nothing is near enough.
    Nothing,
    /// The extension is missing.
    NoExtension,
    /// The model is missing, or took too long.
    NoModel,
}

pub fn describe() {
    let words = "Searches of this process for which the meaning of the question was asked, by result: found, nothing, no_extension, \
                 no_model. All but the first were answered by words alone.";
    describe_counter!(SEARCHES, Unit::Count, words);
}

pub fn count(answered: Answered) {
    let result = match answered {
        Answered::Found => "found",
        Answered::Nothing => "nothing",
        Answered::NoExtension => "no_extension",
        Answered::NoModel => "no_model",
    };
    counter!(SEARCHES, "result" => result).increment(1);
}
