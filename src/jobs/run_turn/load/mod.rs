//! First phase: everything about a task that does not depend on its session. No transaction.

pub mod assignment;
pub mod chain;
pub mod prompt;
pub mod step_fields;
pub mod tools;
