//! What this process has learnt about the models' tokenisers, for sessions that have learnt nothing yet.
//!
//! The truth is on each session's row. This is a first guess that is better than none, and lost with the process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::context::Calibration;

/// By provider and model. Names come from agents' files, so there are few.
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
