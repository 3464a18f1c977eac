//! The jobs that run tasks.

use serde::{Deserialize, Serialize};

use crate::queue::{Backoff, Job, LaneFailure, Policy};

/// The job that runs a task. The task is found by the job's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTurn {
    /// The digest of the request. The queue compares it under an idempotency key.
    pub asked: String,
}

/// The job that runs a task after it has waited for others. A separate kind, so that it is left to binaries that give the agent the
/// results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunJoinedTurn {
    /// The digest, as in [`RunTurn::asked`].
    pub asked: String,
}

impl Job for RunTurn {
    const KIND: &'static str = "run_turn";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            max_attempts: 5,
            backoff: Backoff::default(),
            // None, because providers have timeouts of their own.
            deadline: None,
            lane_failure: LaneFailure::Continue,
        }
    }
}

impl Job for RunJoinedTurn {
    const KIND: &'static str = "run_joined_turn";

    fn policy() -> Policy {
        RunTurn::policy()
    }
}
