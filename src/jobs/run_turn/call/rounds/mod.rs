//! The rounds of a turn whose tools this service runs; `asking` has the loop.

pub mod caller;
pub mod limits;
pub mod record;
pub mod round_loop;
pub mod step;
pub mod window;
