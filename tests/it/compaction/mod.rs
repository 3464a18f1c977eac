//! Compaction on a real Postgres with a summariser that answers, or does worse.
//!
//! The long forms are in `chaos`, behind the feature of that name: `cargo test --features chaos -- chaos`.

#[cfg(feature = "chaos")]
mod chaos;
mod estimates;
mod fidelity;
mod jobs;
mod ladder;
mod prompts;
mod races;
mod stage;
mod turns;

use self::stage::{Stage, Watched, sim};
