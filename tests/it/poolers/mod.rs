//! Connections through a transaction pooler.

mod detection;
mod direct_address;
mod operation;
pub mod pgbouncer;
mod refusals;
