//! The jobs that run tasks.

use serde::{Deserialize, Serialize};

use crate::queue::{Backoff, Job, LaneFailure, Policy};

/// The job that runs a task. The task is found by the job's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTurn {
    /// The digest of the question. The queue compares it under an idempotency key.
    pub asked: String,
}

/// The job that runs a task which has waited for others. A kind of its own, so that no binary takes it that would not tell the agent
/// what they came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunJoinedTurn {
    /// As [`RunTurn::asked`].
    pub asked: String,
}

impl Job for RunTurn {
    const KIND: &'static str = "run_turn";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            max_attempts: 5,
            backoff: Backoff::default(),
            // Providers have timeouts of their own, which know what they wait for.
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
