//! Starts the CLI with a closed set of flags, variables and files.
//!
//! All flags are given on every run, because the CLI remembers only the model, and that one wrongly. Secrets are never arguments: arguments
//! are world-readable.

mod call_folder;
mod child;
mod environment;
mod flags;
pub mod guard;
mod limits;
mod lock;
mod orphans;
mod pipe;
mod processes;

pub(super) use self::{
    call_folder::{CallFiles, CallFolder, Plan},
    child::{Child, Exit, Launch},
    environment::variables,
    flags::{Start, arguments, can_run_programs, fits_bare},
    limits::Limits,
};
