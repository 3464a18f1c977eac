//! Claude: the real CLI against an API of the tests' own, and a scripted one for what the real one does not do on
//! demand.

mod api;
mod both;
mod cli;
mod decoder;
mod faults;
mod host;
mod kills;
mod real;
