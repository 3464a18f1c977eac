//! Pools: which jobs a worker process runs, and how many at once.

use std::net::SocketAddr;

use serde::Deserialize;

use crate::settings::{Checks, empty_as_none};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub turns_slots: u32,
    pub upkeep_slots: u32,
    /// Where a process of its own answers probes, if anywhere.
    #[serde(deserialize_with = "empty_as_none")]
    pub listen: Option<SocketAddr>,
    /// Memory for conversations that a process keeps between turns.
    pub histories_mb: u32,
    /// Where a test wants this process to die.
    #[cfg(feature = "test-fakes")]
    #[serde(default)]
    pub crash_turns_at: Option<super::CrashPoint>,
    /// Where a test wants a turn to fail, once.
    #[cfg(feature = "test-fakes")]
    #[serde(default)]
    pub fail_turns_at: Option<super::CrashPoint>,
}

/// A kind of worker. Two pools, because they fail and scale apart: turns take minutes and drain slowly, upkeep is many
/// short jobs. Each is a queue of the same name.
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
                checks.fail(key, "is over 1000, the most that one claim takes", "at most 1000");
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

    /// Jobs of it that a process with this configuration runs at once; 0 for none at all.
    pub fn slots(self, config: &Config) -> u32 {
        match self {
            Self::Turns => config.turns_slots,
            Self::Upkeep => config.upkeep_slots,
        }
    }
}
