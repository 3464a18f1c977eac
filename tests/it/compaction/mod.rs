//! Compaction on a real Postgres with a summariser that answers, or does worse.

mod estimates;
mod fidelity;
mod jobs;
mod ladder;
mod races;
mod stage;
mod turns;

use self::stage::{Stage, Watched, sim};
