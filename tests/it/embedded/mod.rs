//! The private Postgres of a first run, with real servers.

mod crash;
pub mod lonely;
mod refusals;
mod start;
pub mod support;
mod surroundings;
