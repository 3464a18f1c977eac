//! Rejected attempts at a summary, with what was wrong with them.

use serde::{Deserialize, Serialize};

use crate::context::compaction::{folding::RefusedAttempt, ladder::CompactionStep};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RejectedAttempt {
    /// The author: the model at `first` and `retry`, another one at `alternate`, none at `extract`.
    #[schema(value_type = String)]
    pub step: CompactionStep,
    pub faults: Vec<String>,
}

impl RejectedAttempt {
    pub fn of(refused: &RefusedAttempt) -> Self {
        let faults = refused.refusals.iter().map(ToString::to_string).collect();
        Self { step: refused.rung, faults }
    }
}
