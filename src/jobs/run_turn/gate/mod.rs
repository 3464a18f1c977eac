//! Second phase: checks if the turn may begin now. Otherwise the task is put off, moved to the next model of its
//! agent's chain, failed or cancelled.

pub mod budget;
pub mod busy;
pub mod chain;
pub mod limits;
pub mod paused;
pub mod refuse;
