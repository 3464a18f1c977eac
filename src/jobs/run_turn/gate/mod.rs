//! Second phase: whether the turn may begin now. A task that may not is put off, moved to the other provider, failed or cancelled.

pub mod busy;
pub mod failover;
pub mod paused;
pub mod refuse;
