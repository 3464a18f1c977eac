//! What the model sees: pure code, no database.

mod estimates;
mod fidelity;
mod injection;
mod nodes;
mod properties;
pub mod series;
mod speed;
pub mod support;
