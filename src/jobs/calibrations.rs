//! Calibrations that this process has learnt, by model, for sessions without one of their own.
//!
//! Each session's row has its own calibration, which takes precedence. This one is a first guess, and is lost with the
//! process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::context::Calibration;

/// Calibrations by provider and model. Names come from agents' files, so there are few.
#[derive(Debug, Default)]
pub struct Calibrations(Mutex<HashMap<(String, String), Calibration>>);

impl Calibrations {
    pub fn of(&self, provider: &str, model: &str) -> Calibration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(provider.to_owned(), model.to_owned())).copied().unwrap_or_default()
    }

    pub fn learn(&self, provider: &str, model: &str, calibration: Calibration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((provider.to_owned(), model.to_owned()), calibration);
    }
}
