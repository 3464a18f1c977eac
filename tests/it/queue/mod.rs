//! The queue under faults: real worker processes, real servers, and one checker that reads what handlers wrote.
//!
//! Each fault has a short form in the normal run. The long forms are in `chaos`, behind the feature of that name:
//! `cargo test --features chaos -- chaos`.

mod cancel;
#[cfg(feature = "chaos")]
mod chaos;
mod checker;
mod clocks;
mod connections;
mod crash_points;
mod drain;
mod failover;
mod journal;
mod kills;
mod outage;
mod partition;
mod poison;
mod pooler;
pub mod proxy;
mod stall;
mod supervisor;
mod trial;
mod watch;
