//! Control by people while agents work: the blackboard, pauses, resets, interruptions.

mod blackboard;
pub mod feed_kinds;
mod injection;
mod interrupts;
mod pauses;
mod resets;
mod states;
mod stops_beside_waits;
