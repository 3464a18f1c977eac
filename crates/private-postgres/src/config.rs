//! The settings of the private Postgres.

use std::path::PathBuf;

use serde::Deserialize;

use dalsegno_base::settings::{Checks, empty_as_none};

/// Where the private cluster lives and how its server is run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The folder of everything that the service keeps on this machine: `service.data_dir`.
    #[serde(skip)]
    pub data_dir: PathBuf,
    /// The folder of `postgres` and `initdb`. Searched for when unset.
    #[serde(deserialize_with = "empty_as_none")]
    pub bin_dir: Option<PathBuf>,
    /// The account of the server when the service runs as root.
    #[serde(deserialize_with = "empty_as_none")]
    pub run_as: Option<String>,
    pub listen: Listen,
    /// Whether to download server binaries when the machine has none.
    pub fetch: bool,
    pub start_timeout_secs: u64,
    pub stop_timeout_secs: u64,
    /// Where the cluster goes when the server's account cannot reach `data_dir`.
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

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listen {
    /// A Unix socket where its path is short enough, else loopback TCP.
    Auto,
    Socket,
    Loopback,
}

/// What the cluster is for, which decides how careful it is with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Data that has to survive a power cut.
    #[default]
    Keep,
    /// Data that nobody wants after the run: fast, not durable, many connections.
    Throwaway,
}
