//! Refusals: errors of operations, from which adapters build problem documents and exit codes.

use std::{borrow::Cow, error::Error};

use serde::{Deserialize, Serialize};

use crate::domain::class::{Class, Classify, Kind};

#[derive(Debug)]
pub struct Refusal {
    pub kind: Kind,
    /// Stable: programs decide by it.
    pub code: &'static str,
    /// Text for people: what failed, and the next step.
    pub detail: String,
    /// True if the same call can succeed later.
    pub retryable: bool,
    /// Seconds until a retry is useful.
    pub retry_after_secs: Option<u32>,
    /// The next step, where `detail` does not name it.
    pub advice: Option<&'static str>,
    /// The invalid parts of the input, where they are known.
    pub wrong: Vec<FieldError>,
    /// The underlying error. Its causes are meant for the log, and for users of the host.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// One part of a request that is wrong.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldError {
    /// Of one among many, as that of a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'static, str>>,
    /// A JSON Pointer into the body.
    pub pointer: String,
    pub detail: String,
}

impl Refusal {
    pub fn new(kind: Kind, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            detail: detail.into(),
            retryable: matches!(kind, Kind::TooMany | Kind::Unavailable),
            retry_after_secs: None,
            advice: None,
            wrong: Vec::new(),
            source: None,
        }
    }

    /// Repeats a refusal for each of several calls. Only the first one has the source, so that it is logged once.
    pub(super) fn for_each(self, n_calls: usize) -> impl Iterator<Item = Self> {
        let (kind, code, retryable) = (self.kind, self.code, self.retryable);
        let (retry_after_secs, wrong) = (self.retry_after_secs, self.wrong.clone());
        let detail = match (kind, self.advice) {
            (Kind::Unavailable | Kind::Internal, Some(advice)) => {
                format!("{}; {advice}", self.detail)
            }
            _ => self.detail.clone(),
        };
        let again = move || Self {
            retryable,
            retry_after_secs,
            wrong: wrong.clone(),
            ..Self::new(kind, code, detail.clone())
        };
        std::iter::once(self).chain(std::iter::repeat_with(again).take(n_calls.saturating_sub(1)))
    }

    pub fn fault(operation: &str, error: &serde_json::Error) -> Self {
        let detail = format!("cannot write the output of `{operation}` as JSON: {error}");
        Self::new(Kind::Internal, "internal", detail)
    }
}

impl<E: Classify> From<E> for Refusal {
    fn from(error: E) -> Self {
        let Class { kind, code, retryable, words, advice } = error.class();
        let (detail, source): (_, Option<Box<dyn Error + Send + Sync>>) = match words {
            Some(words) => (words.to_owned(), None),
            None => (error.to_string(), Some(Box::new(error))),
        };
        Self { retryable, advice, source, ..Self::new(kind, code, detail) }
    }
}

/// Returns the HTTP status of a kind.
pub const fn status(kind: Kind) -> u16 {
    match kind {
        Kind::Malformed => 400,
        Kind::Forbidden => 403,
        Kind::NotFound => 404,
        Kind::Conflict => 409,
        Kind::TooLarge => 413,
        Kind::Invalid => 422,
        Kind::Internal => 500,
        Kind::TooMany => 429,
        Kind::Unavailable => 503,
    }
}

/// Returns the kind that a client derives from a status.
pub const fn kind_of_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Forbidden,
        404 => Kind::NotFound,
        409 => Kind::Conflict,
        413 => Kind::TooLarge,
        422 => Kind::Invalid,
        429 => Kind::TooMany,
        // A proxy in front of the server, or a timeout.
        502..=504 => Kind::Unavailable,
        400..500 => Kind::Malformed,
        _ => Kind::Internal,
    }
}
