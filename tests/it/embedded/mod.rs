//! The private Postgres of a first run, with real servers.

mod crash;
mod environment;
pub mod orphaned_server;
mod refusals;
mod start;
pub mod support;
