//! The calls of a turn whose tools this service carries out; `asking` is the loop.

pub mod asking;
pub mod caller;
pub mod limits;
pub mod record;
pub mod step;
pub mod window;
