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
    /// The session. Others of the same conversation are searched for the turns, too: the numbers continue from session to session.
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
        let to_session = self.to_session.unwrap_or(self.id);
        let from = turns::find_session(&mut transaction, self.id, self.from).await?;
        let to = turns::find_session(&mut transaction, to_session, self.to).await?;
        Ok(contexts::compare(&mut transaction, (from, self.from), (to, self.to)).await?)
    }
}
