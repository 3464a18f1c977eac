//! The decision about the fate of a turn, from its call and everything else that matters.

use super::{
    busy, cancellation, failover,
    fate::{self, Fate, FateInput},
    turn::Turn,
};
use crate::{causes::causes, jobs::run_turn::error::Error, queue::Stop};

/// Decides the fate. `can_shrink`: the conversation can still be shortened if the provider refuses it as too long.
pub async fn decide(turn: &Turn<'_>, can_shrink: bool) -> Result<Fate, Error> {
    let Turn { run, services, assignment, called, .. } = turn;
    let fate = fate::decide(&called.result, collect_facts(turn));
    let fate = busy::back_off(run, services, assignment, called, fate).await;
    let fate = match fate {
        Fate::LeaseLost => return Err(Error::Overtaken),
        Fate::NoRoom { why } if !can_shrink => {
            Fate::Failed { why, interrupted: false, rejected: true, refusal: None }
        }
        fate => failover::skip_wait(assignment, fate, &called.result, services.clock.now()),
    };
    let fate = turn.structured.apply(fate, run, services, assignment);
    let fate = cancellation::apply_cancellation(run.pool(), assignment.task.id, fate).await;
    log(turn, &fate);
    Ok(fate)
}

fn collect_facts(Turn { run, opened, called, .. }: &Turn<'_>) -> FateInput {
    let session = &opened.session;
    FateInput {
        stop: run.stop_reason().or(called.is_stopped.then_some(Stop::Cancelled)),
        is_last_attempt: run.attempt() >= run.max_attempts(),
        has_history: opened.has_history,
        rebuilt_in_vain: (session.context_tokens == 0).then_some(session.opened_because),
    }
}

fn log(turn: &Turn<'_>, fate: &Fate) {
    if let Err(error) = &turn.called.result {
        tracing::info!(
            job.id = turn.run.job_id(),
            code = error.code,
            error = causes(&error),
            ?fate,
            "the call to the provider failed"
        );
    }
}
