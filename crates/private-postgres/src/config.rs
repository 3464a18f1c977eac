//! The settings of the private Postgres.

use std::path::PathBuf;

use serde::Deserialize;

use dalsegno_base::settings::{Checks, empty_as_none};

/// Settings of the private cluster and its server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Folder of all files that the service keeps on this machine: `service.data_dir`.
    #[serde(skip)]
    pub data_dir: PathBuf,
    /// Folder of `postgres` and `initdb`. Searched for when unset.
    #[serde(deserialize_with = "empty_as_none")]
    pub bin_dir: Option<PathBuf>,
    /// Account of the server when the service runs as root.
    #[serde(deserialize_with = "empty_as_none")]
    pub run_as: Option<String>,
    pub listen: Listen,
    /// Downloads server binaries if the machine has none.
    pub fetch: bool,
    pub start_timeout_secs: u64,
    pub stop_timeout_secs: u64,
    /// Folder of the cluster if the server's account cannot reach `data_dir`.
    pub fallback_dir: PathBuf,
    #[serde(skip)]
    pub purpose: Purpose,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from(".dalsegno"),
            bin_dir: None,
            run_as: None,
            listen: Listen::Auto,
            fetch: true,
            start_timeout_secs: 60,
            stop_timeout_secs: 30,
            fallback_dir: PathBuf::from("/var/lib/dalsegno"),
            purpose: Purpose::Keep,
        }
    }
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.secs("database.embedded.start_timeout_secs", self.start_timeout_secs, 1);
        checks.secs("database.embedded.stop_timeout_secs", self.stop_timeout_secs, 1);
    }
}

/// The kind of address that the server listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listen {
    /// A Unix socket if its path is short enough, else loopback TCP.
    Auto,
    Socket,
    Loopback,
}

/// The purpose of the cluster, which decides the durability of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Data that has to survive a power cut.
    #[default]
    Keep,
    /// Data that is not needed after the run: fast, not durable, many connections.
    Throwaway,
}
