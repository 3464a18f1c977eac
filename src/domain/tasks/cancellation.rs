//! Results of a cancellation: of the named task and of its descendants.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Cancelled;
use crate::queue::admin;

/// The answer to the cancellation of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskCancellation)]
pub struct Cancellation {
    /// Of the task that was named.
    pub cancel: Cancelled,
    /// Of the tasks that hang on it.
    pub below: Below,
}

/// How many tasks were cancelled together with another one or with their flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CancelledBelow)]
pub struct Below {
    /// They did not run, and have ended.
    pub cancelled: u64,
    /// They run; their workers were asked to stop.
    pub stopping: u64,
}

/// The answer to the cancellation of a task, with the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CancelledTask {
    pub task_id: Uuid,
    #[serde(flatten)]
    pub cancellation: Cancellation,
}

/// The answer to the cancellation of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CancelledJob {
    pub id: i64,
    pub cancel: admin::Cancelled,
    /// The task that it runs, where something of that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<CancelledTask>,
}

impl Below {
    pub(in crate::domain) fn count(&mut self, cancelled: Cancelled) {
        match cancelled {
            Cancelled::AtOnce => self.cancelled += 1,
            Cancelled::Requested | Cancelled::AtSafePoint => self.stopping += 1,
            Cancelled::HadEnded => {}
        }
    }

    /// Counts a task and its descendants.
    pub(in crate::domain) fn add(&mut self, other: Cancellation) {
        self.count(other.cancel);
        self.cancelled += other.below.cancelled;
        self.stopping += other.below.stopping;
    }

    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}
