//! Second phase: checks if the turn may begin now. Otherwise the task is put off, moved to the fallback, failed or
//! cancelled.

pub mod budget;
pub mod busy;
pub mod failover;
pub mod limits;
pub mod paused;
pub mod refuse;
