//! The private Postgres of a first run, with real servers.

mod crash;
mod refusals;
mod start;
pub mod support;
mod surroundings;
