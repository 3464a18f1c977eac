//! Handler of `ping`, which does nothing: its end shows that the queue works from end to end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Services;
use crate::queue::{End, HandlerResult, Job, Policy, Run};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ping {}

impl Job for Ping {
    const KIND: &'static str = "ping";

    fn policy() -> Policy {
        Policy { queue: "upkeep", max_attempts: 1, ..Policy::default() }
    }
}

pub(super) async fn run(_: Ping, _: Run, _: Arc<Services>) -> HandlerResult {
    Ok(End::Done)
}
