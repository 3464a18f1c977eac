//! Comparison of the contexts of two calls.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
pub use crate::domain::contexts::{
    ComparedContext, ContextDiff, PartChange, PartDiff, WordChange, WordChangeKind, diff_words,
};
use crate::domain::{
    contexts::{self, Error},
    sessions, turns,
};

/// Compares what two turns were sent, in one session or in two: which parts came, went and changed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareContexts {
    pub id: Uuid,
    pub from: i32,
    pub to: i32,
    /// Session of the turn `to`. Without it, the same session.
    pub to_session: Option<Uuid>,
}

impl Operation for CompareContexts {
    const SPEC: Spec =
        Spec::read("compare_contexts", "/v1/sessions/{id}/context-diff", "context diff")
            .tag("sessions")
            .refuses(&[sessions::Error::UNKNOWN, turns::Error::UNKNOWN, Error::NOT_STORED]);
    type Output = ContextDiff;

    async fn run(self, call: &Call) -> Result<ContextDiff, Refusal> {
        let mut transaction = call.begin_read().await?;
        let to = (self.to_session.unwrap_or(self.id), self.to);
        Ok(contexts::compare(&mut transaction, (self.id, self.from), to).await?)
    }
}
