//! Claude: the real CLI against an API of the tests' own, and a scripted one for what the real one does not do on
//! demand.

pub mod api;
mod both;
pub mod cli;
mod decoder;
mod faults;
pub mod host;
mod kills;
mod limits;
mod real;
