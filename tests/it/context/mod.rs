//! The context of a call: pure code, without a database.

mod estimates;
mod fidelity;
mod heavy;
mod injection;
mod long_histories;
mod nodes;
mod properties;
mod requirements;
pub mod script;
pub mod support;
