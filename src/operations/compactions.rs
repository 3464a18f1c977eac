//! Comparison of sessions before and after a compaction.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
use crate::domain::{
    compactions::{self, CompactionComparison},
    sessions, tasks,
};

/// Compares a session before and after a compaction: the place of each replaced message and value, and the rejected summaries.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareCompaction {
    /// The session.
    pub id: Uuid,
    /// The number of the compaction, its generation.
    pub number: i32,
}

impl Operation for CompareCompaction {
    const SPEC: Spec = Spec::read(
        "compare_compaction",
        "/v1/sessions/{id}/compactions/{number}",
        "session compaction",
    )
    .tag("sessions")
    .refuses(&[sessions::Error::UNKNOWN, compactions::Error::UNKNOWN]);
    type Output = CompactionComparison;

    async fn run(self, call: &Call) -> Result<CompactionComparison, Refusal> {
        let mut transaction = call.begin_read().await?;
        let replaced = compactions::replaced_texts(&mut transaction, self.id, self.number).await?;
        let agent_tasks =
            tasks::added_by_agents(&mut *transaction, &replaced.prompt_tasks()).await?;
        Ok(replaced.compare(&agent_tasks))
    }
}
