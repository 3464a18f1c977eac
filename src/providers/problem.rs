//! What is wrong with a provider's configuration.

/// One thing that is wrong, with a key relative to the provider's own section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl Problem {
    pub(super) fn new(key: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), fix: fix.into() }
    }

    /// For keys that make no sense below a value.
    pub(super) fn below(key: &str, value: u64, least: u64) -> Option<Self> {
        let message = format!("is {value}, but has to be at least {least}");
        (value < least).then(|| Self::new(key, message, least.to_string()))
    }
}
