//! Compaction on a real Postgres, with honest and faulty summarisers.

#[cfg(feature = "chaos")]
mod chaos;
mod comparison;
mod estimates;
mod fidelity;
mod jobs;
mod ladder;
mod prompts;
mod races;
mod setup;
mod turns;

use self::setup::{Setup, WatchedProvider, sim};
