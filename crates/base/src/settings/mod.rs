//! Reading, checking and explaining settings: layers, the origin of each value, problems, the environment.
//!
//! It knows no section. Each section is a struct beside the component that it configures, and checks itself; `config`
//! assembles them. Loading never stops at the first problem: it collects all of them, each with the origin of the value
//! and a fix. Only this module reads the process environment, in [`Environment::capture`]. The private Postgres calls
//! that once more for the few variables of its programs (`crates/private-postgres/src/ambient.rs`).

mod check;
mod environment;
mod layers;
mod named_sections;
mod origin;
mod problem;
mod sources;
mod wrong_value;

use std::path::PathBuf;

pub use self::{
    check::{Checks, empty_as_none, toml},
    environment::Environment,
    layers::{Layers, is_secret},
    origin::Origin,
    problem::{Problem, Problems},
    sources::FILE_VARIABLE,
};

/// The settings of the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config FILE`.
    pub file: Option<PathBuf>,
    /// `--set key=value`, in order.
    pub set: Vec<(String, String)>,
}
