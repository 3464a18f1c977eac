//! The provider's count of a call that would not fit by its estimate. Calls that fit are not counted: that would cost each a round trip.

use super::open_turn::NoRoom;
use crate::{context::Checkpoint, jobs::run_turn::load::assignment::Assignment, queue::Run};

/// Counts the call before older messages are folded because of an estimate. `None`: nothing can be folded, or the provider does not count.
/// No transaction is open.
pub async fn count(run: &Run, assignment: &Assignment<'_>, no_room: &NoRoom) -> Option<Checkpoint> {
    let NoRoom { session, has_history, weight, request, .. } = no_room;
    if !has_history {
        return None;
    }
    let real_tokens = assignment.route.provider.count_tokens(request, run.cancel()).await?;
    tracing::debug!(
        session.id = %session.id,
        expected_tokens = request.estimated_prompt_tokens,
        real_tokens,
        "the provider has counted a call that seemed too long"
    );
    Some(Checkpoint { weight: *weight, real_tokens })
}
