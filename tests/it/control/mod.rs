//! What people have in their hands while agents work: the blackboard, pauses, resets.

mod blackboard;
mod feed_kinds;
mod injection;
mod interrupts;
mod pauses;
mod resets;
mod states;
