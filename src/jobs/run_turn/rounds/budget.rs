//! Whether the next call of a turn may still be paid for.
//!
//! What it may cost is set aside beside what the turn has spent, in the campaign's budget, before it is made: so many turns at
//! once pass a limit by no more than one does.

use std::time::Duration;

use super::super::{assignment::Assignment, begin, begin::Opened};
use crate::{
    domain::{
        Amount,
        amount::{Limit, Owner, Refusal},
        campaigns::ReserveError,
        tasks, turns,
    },
    jobs::Services,
    providers::{self, Class, Scope},
    queue::Run,
};

/// Nobody's failure.
pub(in crate::jobs::run_turn) const BUDGET: &str = "turn.budget";
/// Until running turns have given back what they had set aside.
const PAUSE: Duration = Duration::from_secs(5);

/// Where nothing limits the turn, nothing is asked and nothing is written.
pub(super) async fn set_aside(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut Opened,
    spent: Amount,
) -> Result<(), providers::Error> {
    if !assignment.is_limited {
        return Ok(());
    }
    let ahead = begin::reserve(services, assignment, opened.estimated_tokens);
    let needed = spent + ahead;
    // What room has cost in between is the task's already.
    let task = tasks::get(run.pool(), assignment.task.id).await.map_err(not_read)?;
    let limit = Limit { micros: task.budget_micros, tokens: task.budget_tokens };
    let before = Amount { micros: task.spent_micros, tokens: task.spent_tokens };
    limit.admit(Owner::Task, before, Amount::ZERO, needed).map_err(refused)?;
    let reserved = opened.begun.reserved;
    let more = Amount {
        micros: needed.micros.saturating_sub(reserved.micros).max(0),
        tokens: needed.tokens.saturating_sub(reserved.tokens).max(0),
    };
    if more.is_zero() {
        return Ok(());
    }
    let mut tx = run.pool().begin().await.map_err(not_read)?;
    match turns::reserve_more(&mut tx, &opened.begun, more).await {
        Ok(()) => {
            tx.commit().await.map_err(not_read)?;
            opened.begun.reserved = reserved + more;
            Ok(())
        }
        Err(turns::Error::Budget(ReserveError::Refused(refusal))) => Err(refused(refusal)),
        Err(error) => Err(not_read(error)),
    }
}

fn refused(refusal: Refusal) -> providers::Error {
    let class = match refusal.may_pass_later() {
        true => Class::Snooze { after: PAUSE, scope: Scope::Host },
        false => Class::Fail,
    };
    providers::Error::new(BUDGET, class, refusal).not_made()
}

/// The end of the turn finds out for itself if somebody else has the conversation by now.
fn not_read(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> providers::Error {
    providers::Error::new("transcript.not_read", Class::Retry { after: None }, error).not_made()
}
