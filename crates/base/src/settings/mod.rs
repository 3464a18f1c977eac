//! Reading, checking and explaining settings: layers, the origin of each value, problems, the environment.
//!
//! A leaf: it knows no section. Each section is a struct beside the component that it configures and checks itself;
//! `config` assembles them. Loading never stops at the first problem: it collects all of them, each with the origin of the
//! value and what to write instead. Only this module reads the process environment, in [`Environment::capture`]; the private
//! Postgres takes the few variables that its programs need from there once more (`crates/private-postgres/src/ambient.rs`).

mod check;
mod environment;
mod layers;
mod problem;

use std::path::PathBuf;

pub use self::{
    check::{Checks, empty_as_none, toml},
    environment::Environment,
    layers::{FILE_VARIABLE, Layers, Origin, is_secret},
    problem::{Problem, Problems},
};

/// The settings of the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config FILE`.
    pub file: Option<PathBuf>,
    /// `--set key=value`, in order.
    pub set: Vec<(String, String)>,
}
