//! Claude: the real CLI with an API of the tests, and a scripted CLI for faults on demand.

pub mod api;
mod both_clis;
pub mod cli;
mod decoder;
mod faults;
mod folders;
pub mod host;
mod kills;
mod limits;
mod real_cli;
