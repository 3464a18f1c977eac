//! Starting the CLI: with what it says on its command line, in its environment and in its folders, and nothing else.
//!
//! The set of flags and of variables is closed. All flags are given on every run, because the CLI remembers none but the
//! model, and that one wrongly. Secrets are in no argument: arguments are world-readable.

mod child;
mod environment;
mod flags;
mod ground;
pub mod guard;
mod limits;
mod lock;
mod orphans;
mod pipe;
mod processes;

pub(super) use self::{
    child::{Child, Exit, Launch},
    environment::variables,
    flags::{Start, arguments, fits_bare, runs_others},
    ground::{Ground, Plan},
    limits::Limits,
};
