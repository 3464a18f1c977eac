//! The worker of the queue, with handlers of the tests, on a real database.

mod admin_calls;
mod ends;
mod explain;
mod faults;
mod fence;
pub mod fixture;
mod groups;
mod lanes;
mod run_alone;
