//! Pools: the kinds of workers, and their slots.

use std::net::SocketAddr;

use serde::Deserialize;

use crate::settings::{Checks, empty_as_none};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub turns_slots: u32,
    pub upkeep_slots: u32,
    /// Address of the probes of a separate worker process. None disables them.
    #[serde(deserialize_with = "empty_as_none")]
    pub listen: Option<SocketAddr>,
    /// Megabytes of memory for conversations that a process keeps between turns.
    pub histories_mb: u32,
    /// Point at which a test lets this process die.
    #[cfg(feature = "test-fakes")]
    #[serde(default)]
    pub crash_turns_at: Option<super::CrashPoint>,
    /// Point at which a test lets a turn fail, once.
    #[cfg(feature = "test-fakes")]
    #[serde(default)]
    pub fail_turns_at: Option<super::CrashPoint>,
}

/// A kind of worker. Each pool is a queue of the same name. There are two, because they fail and scale apart: turns
/// take minutes and drain slowly, upkeep is many short jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Turns,
    Upkeep,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        for (key, slots) in
            [("worker.turns_slots", self.turns_slots), ("worker.upkeep_slots", self.upkeep_slots)]
        {
            if slots > 1_000 {
                checks.fail(key, "is over 1000, the maximum of one claim", "at most 1000");
            }
        }
    }
}

impl Pool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Upkeep => "upkeep",
        }
    }

    /// Returns the number of jobs that a process runs at once with this configuration. 0: it does not run this pool.
    pub fn slots(self, config: &Config) -> u32 {
        match self {
            Self::Turns => config.turns_slots,
            Self::Upkeep => config.upkeep_slots,
        }
    }
}
