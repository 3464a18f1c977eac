//! Context windows of models.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Suffix of the CLI's names for models with a window of a million.
const LONG: &str = "[1m]";
const LONG_TOKENS: u32 = 1_000_000;

/// Windows that models have reported, and the configured one for the others.
#[derive(Debug)]
pub(super) struct Windows {
    configured_tokens: u32,
    known: Mutex<HashMap<String, u32>>,
}

impl Windows {
    pub(super) fn new(configured_tokens: u32) -> Self {
        Self { configured_tokens, known: Mutex::default() }
    }

    pub(super) fn of(&self, model: &str) -> u32 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(model).copied().unwrap_or(match model.ends_with(LONG) {
            true => LONG_TOKENS,
            false => self.configured_tokens,
        })
    }

    pub(super) fn learn(&self, model: &str, tokens: u32) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(model) != Some(&tokens) {
            known.insert(model.to_owned(), tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_trusted_once_it_has_reported_its_window() {
        let windows = Windows::new(200_000);
        assert_eq!(windows.of("claude-sonnet-5"), 200_000);
        assert_eq!(windows.of("claude-sonnet-5[1m]"), 1_000_000);
        windows.learn("claude-sonnet-5", 500_000);
        assert_eq!(windows.of("claude-sonnet-5"), 500_000);
    }
}
