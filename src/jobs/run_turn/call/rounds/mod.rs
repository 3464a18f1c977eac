//! The rounds of a turn whose tools this service runs; `asking` has the loop.

pub mod asking;
pub mod caller;
pub mod limits;
pub mod record;
pub mod step;
pub mod window;
