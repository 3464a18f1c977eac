//! Problems in a provider's configuration.

/// One problem, with a key relative to the provider's own section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub message: String,
    /// Text to write instead.
    pub fix: String,
}

impl Problem {
    pub(super) fn new(key: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), fix: fix.into() }
    }

    /// Returns a problem if `value` is less than `least`.
    pub(super) fn below(key: &str, value: u64, least: u64) -> Option<Self> {
        let message = format!("is {value}, but must be at least {least}");
        (value < least).then(|| Self::new(key, message, least.to_string()))
    }
}
