//! The job of a rerun.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::queue::{Backoff, Job, Policy};

/// Makes one call of a turn again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerunTurn {
    pub rerun_id: Uuid,
}

impl Job for RerunTurn {
    const KIND: &'static str = "rerun_turn";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            max_attempts: 3,
            backoff: Backoff { first: Duration::from_secs(5), cap: Duration::from_secs(60) },
            deadline: Some(Duration::from_secs(60 * 60)),
            ..Policy::default()
        }
    }
}

/// The lane of a session's reruns. They run one after the other, so that each finds its prompt in the provider's cache. The turns of the
/// conversation have another lane.
pub(super) fn lane(session_id: Uuid) -> String {
    format!("reruns/{session_id}")
}
