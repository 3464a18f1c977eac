//! The SQL of the queue, called as any language may call it: what it refuses, what it decides, how it is planned.
//!
//! Everything goes through the functions of the schema and through the very files of `crates/queue/src/sql`, on a real
//! database. No worker runs here; the tests do what workers do, one statement after the other.

mod document;
mod input;
mod input_in_bulk;
mod input_in_rust;
mod keys;
mod lost_workers;
mod machine;
mod model;
mod picture;
mod plan_data;
mod plans;
mod random;
mod refusal;
pub mod statements;
mod steps;
