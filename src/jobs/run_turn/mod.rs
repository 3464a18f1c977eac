//! One turn of a task, from its job to its committed answer.
//!
//! ```text
//! read      task · campaign · agent · window          no transaction
//! begin     resolve → view · board → assemble → budget transaction A: turn, prompt, feed
//!  (room)   fold older messages, begin again          no transaction; at most twice
//! call      the provider                              no transaction; the feed gets what arrives
//!  (tools)  carried out, and the provider asked again  each with transactions of its own
//! settle    answer, failure or interruption           transaction B: messages, posts shown, ledger, counters, task, feed, job
//! ```
//!
//! Invariants:
//! - Between A and B the turn is on its session's row. Whoever comes after a crash ends it as interrupted, and the next
//!   call says so in a notice: nothing is ever sent again silently.
//! - B and the end of the job are one commit. The prompt has the id of its task, so no attempt writes it twice.
//! - Every way out leaves the task ended, or queued with its job coming again.
//! - What cannot help is not tried for ever: each failure that comes back uses up an attempt of the job, or is bounded
//!   by a rule of its own ([`settle`]).
//!
//! Races: a cancellation, a drain or a lost lease stop the call through the run's token. What the call had given by
//! then counts; a run that has lost its lease writes nothing, because begin and end both name it.

mod arrival;
mod assignment;
mod begin;
mod board;
mod budget;
mod busy;
mod call;
mod crash_points;
mod ending;
mod error;
mod failover;
mod interruption;
mod joined;
mod kept;
mod ledger;
mod notices;
mod offer;
mod outlook;
mod paused;
mod progress;
mod refuse;
mod room;
mod rounds;
mod said;
mod settle;
mod team;
mod told;
mod witness;

use std::sync::Arc;

#[cfg(feature = "test-fakes")]
pub use self::crash_points::CrashPoint;
#[cfg(not(feature = "test-fakes"))]
use self::crash_points::CrashPoint;
pub(super) use self::crash_points::CrashPoints;
use self::{
    assignment::Assignment,
    begin::{Before, Beginning, NoRoom, Opened},
    call::Called,
    ending::Turn,
    error::Refused,
    room::Needed,
    settle::{Facts, Fate},
};
pub(super) use self::{
    error::Error,
    told::{begin as begin_metrics, describe},
};
use super::Services;
use crate::{
    causes::causes,
    context::Pressure,
    domain::tasks::{self, RunJoinedTurn, RunTurn},
    providers::Request,
    queue::{End, HandlerResult, Run, Stop},
};

pub(super) async fn run(_: RunTurn, run: Run, services: Arc<Services>) -> HandlerResult {
    match take_turn(&run, &services).await {
        Err(Error::Ended) => Ok(End::Done),
        // Another attempt would find none either, and hold up the conversation.
        Err(error @ Error::NoTask(_)) => {
            tracing::warn!(job.id = run.job_id(), "{error}; the job ends without a turn");
            Ok(End::Done)
        }
        ended => ended.map_err(|error| error.into_job_error(&run)),
    }
}

/// The same for a task that has waited for others: what they came to stands in front of its prompt.
pub(super) async fn run_joined(
    job: RunJoinedTurn,
    run_of_job: Run,
    services: Arc<Services>,
) -> HandlerResult {
    run(RunTurn { asked: job.asked }, run_of_job, services).await
}

async fn take_turn(run: &Run, services: &Services) -> Result<End, Error> {
    let read = assignment::read(run.pool(), services, run.job_id()).await?;
    if let Some(task) = read.asked_to_stop() {
        return refuse::cancelled(run, services, task).await;
    }
    if let Some(task) = read.paused()
        && let Some(end) = paused::wait(run, services, task).await?
    {
        return Ok(end);
    }
    if let Some((task, flow_id)) = read.paused_flow()
        && let Some(end) = paused::wait_for_flow(run, services, task, flow_id).await?
    {
        return Ok(end);
    }
    services.crash_points.pass(CrashPoint::BeforeResolve).map_err(Error::undone)?;
    let assigned = Assignment::of(services, read, run.cancel()).await;
    let assignment = match assigned {
        Ok(assignment) => assignment,
        Err((task, refused)) => return refuse::refuse(run, services, &task, &refused).await,
    };
    told::begin_model(&assignment.route.provider_name, &assignment.route.model);
    let task = &assignment.task;
    let admitted = busy::admit(run, services, &assignment).await;
    let answered = match admitted {
        Ok(()) => Box::pin(answer(run, services, &assignment)).await,
        Err(refused) => Err(refused),
    };
    match answered {
        // While room was made, for instance; a turn that was cancelled in its call has written that itself.
        Err(Error::Refused(_) | Error::Undone(_)) if run.stop_reason() == Some(Stop::Cancelled) => {
            refuse::cancelled(run, services, task).await
        }
        Err(Error::Refused(refused)) => {
            let refused = failover::take_over(run, services, &assignment, refused).await?;
            refuse::refuse(run, services, task, &refused).await
        }
        ended => ended,
    }
}

/// Begins, calls and settles. Begins again once for room that the estimate asks for, and calls again with less each time the
/// provider refuses the conversation as too long ([`room::keep_after`]).
async fn answer(run: &Run, services: &Services, assignment: &Assignment<'_>) -> Result<End, Error> {
    let mut before = Before::default();
    loop {
        let task = &assignment.task;
        if before.n_rooms > 0 && tasks::is_asked_to_stop(run.pool(), task.id).await? {
            return refuse::cancelled(run, services, task).await;
        }
        let began_at = services.clock.now();
        let (mut opened, request) = match begin::begin(run, services, assignment, before).await? {
            Beginning::Opened(opened, request) => (opened, request),
            Beginning::NoRoom(NoRoom { session, around, pressure }) => {
                before.n_rooms += 1;
                let keep = room::keep_after(before.n_rooms).unwrap_or_default();
                let needed = Needed { around, pressure, refused_tokens: None, keep };
                room::make(run, services, assignment, session.id, needed).await?;
                continue;
            }
        };
        services.crash_points.pass(CrashPoint::AfterBegin).map_err(Error::undone)?;
        let called = ask(run, services, assignment, &mut opened, request).await?;
        let called = witness::judge(services, &opened, called);
        services.crash_points.pass(CrashPoint::AfterCall).map_err(Error::undone)?;
        let n_refused = before.n_refused + 1;
        let keep = room::keep_after(n_refused).filter(|_| opened.has_history);
        let fate = settle::decide(&called.result, facts(run, &opened, &called));
        let fate = busy::back_off(run, services, assignment, &called, fate).await;
        let fate = match fate {
            Fate::LeaseLost => return Err(Error::Overtaken),
            Fate::NoRoom { why } if keep.is_none() => {
                Fate::Failed { why, interrupted: false, rejected: true }
            }
            fate => failover::hasten(assignment, fate, &called.result, services.clock.now()),
        };
        let fate = interruption::heed(run.pool(), task.id, fate).await?;
        log(run, &called, &fate);
        let turn = Turn { run, services, assignment, opened: &opened, called: &called };
        let ended = turn.end(&fate).await?;
        told::tell(&turn, &fate, began_at);
        if let Some(end) = ended {
            return Ok(end);
        }
        let session_id = opened.begun.session_id;
        let needed = Needed {
            around: opened.around,
            pressure: Pressure::Overflow,
            refused_tokens: Some(opened.estimated_tokens),
            keep: keep.unwrap_or_default(),
        };
        room::make(run, services, assignment, session_id, needed).await?;
        before = Before { n_rooms: before.n_rooms.max(1), n_refused };
    }
}

/// All calls of the turn, and what its tools do in between.
async fn ask(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut Opened,
    request: Request,
) -> Result<Called, Error> {
    if !assignment.route.keeps_conversation {
        // Many turns run at once, and most of them call nothing.
        return Box::pin(rounds::ask(run, services, assignment, opened, request)).await;
    }
    Ok(match kept::conversation(run, services, assignment, opened).await {
        Ok(conversation) => {
            let request = Request { conversation, ..request };
            Box::pin(kept::call(run, services, assignment, opened, request)).await
        }
        Err(error) => Called::not_made(error, services.clock.now()),
    })
}

fn facts(run: &Run, opened: &Opened, called: &Called) -> Facts {
    let session = &opened.session;
    Facts {
        stop: run.stop_reason().or(called.is_stopped.then_some(Stop::Cancelled)),
        is_last_attempt: run.attempt() >= run.max_attempts(),
        has_history: opened.has_history,
        rebuilt_in_vain: (session.context_tokens == 0).then_some(session.opened_because),
    }
}

fn log(run: &Run, called: &Called, fate: &Fate) {
    if let Err(error) = &called.result {
        tracing::info!(
            job.id = run.job_id(),
            code = error.code,
            error = causes(&error),
            ?fate,
            "a call gave no answer"
        );
    }
}
