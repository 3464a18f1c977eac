//! The worker of the queue, with handlers of the tests, on a real database.

mod ends;
mod explain;
mod faults;
pub mod ground;
mod lanes;
mod people;
