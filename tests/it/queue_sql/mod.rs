//! The SQL of the queue, called like from any language: refusals, decisions and plans.
//!
//! All calls use the functions of the schema and the files of `crates/queue/src/sql`, on a real database. No worker
//! runs; the tests execute a worker's statements one by one.

mod cancel_beside_claim;
mod document;
mod input;
mod input_in_bulk;
mod input_in_rust;
mod keys;
mod lane_purge;
mod lost_workers;
mod machine;
mod model;
mod plan_data;
mod plans;
mod random;
mod refusal;
mod run_alone;
mod snapshot;
pub mod statements;
mod steps;
mod urgent;
