//! Results of a cancellation: of the named task and of its descendants.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::queue::admin;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskCancelled)]
pub enum CancelOutcome {
    AtOnce,
    /// The task runs. Its worker was asked to stop, and will write the end.
    Requested,
    /// The task runs. Its worker ends it at the next safe point; an answer that comes first counts.
    AtSafePoint,
    /// The task had ended before. Only descendants were cancelled.
    HadEnded,
}

/// Result of the cancellation of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskCancellation)]
pub struct Cancellation {
    /// Result for the named task.
    pub cancel: CancelOutcome,
    /// Results for its descendants: its children and continuations.
    pub below: DescendantCounts,
}

/// Number of tasks that were cancelled together with another task or with their flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CancelledBelow)]
pub struct DescendantCounts {
    /// Tasks that did not run and have ended.
    pub cancelled: u64,
    /// Tasks that run; their workers were asked to stop.
    pub stopping: u64,
}

/// Result of the cancellation of a task, with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CancelledTask {
    pub task_id: Uuid,
    #[serde(flatten)]
    pub cancellation: Cancellation,
}

/// Result of the cancellation of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CancelledJob {
    pub id: i64,
    pub cancel: admin::CancelOutcome,
    /// The task that the job runs, if the task or a descendant was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<CancelledTask>,
}

impl DescendantCounts {
    pub(in crate::domain) fn count(&mut self, cancelled: CancelOutcome) {
        match cancelled {
            CancelOutcome::AtOnce => self.cancelled += 1,
            CancelOutcome::Requested | CancelOutcome::AtSafePoint => self.stopping += 1,
            CancelOutcome::HadEnded => {}
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
