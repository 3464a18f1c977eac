//! What the model sees: pure code, no database.

mod estimates;
mod fidelity;
mod heavy;
mod injection;
mod nodes;
mod properties;
mod requirements;
pub mod series;
mod speed;
pub mod support;
