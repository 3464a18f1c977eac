//! What the model sees: pure code, no database.

mod estimates;
mod fidelity;
mod injection;
mod properties;
mod speed;
mod support;
