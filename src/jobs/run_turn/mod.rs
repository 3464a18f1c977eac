//! A turn of a task, from its job to its committed answer, in five phases.
//!
//! ```text
//! load      task · campaign · agent · window          no transaction
//! gate      cancelled? paused? busy?                  one of its own, where the turn may not begin
//! begin     session → entries → outlook → budget      transaction A: turn, prompt, feed
//!  (room)   count exactly, fold older messages,       no transaction; bounded by `make_space::keep_after`
//!           begin again
//! call      the provider                              no transaction; the feed gets what arrives
//!  (rounds) tools, and the provider asked again       each with transactions of its own
//! commit    answer, failure or interruption           transaction B: messages, posts shown, ledger, counters, task, feed, job
//! ```
//!
//! The call may also be sent as a batch ([`call::batch`]). The run then ends after `begin`, and a later one goes on with the answer.
//!
//! Each phase is given the value of the one before, and names nothing of a later one.
//!
//! Invariants:
//! - Between A and B the turn is on its session's row. After a crash the next run ends it as interrupted, and the next
//!   call says so in a notice: a prompt is never resent silently.
//! - B and the end of the job are one commit. The prompt has the id of its task, so two attempts store it once.
//! - Every end of a run leaves the task ended, or queued with a live job.
//! - Retries are bounded: each repeated failure uses up an attempt of the job, or is limited by a rule of its own
//!   ([`commit::fate`]).
//!
//! Races: a cancellation, a drain or a lost lease stops the call through the run's token. Output that had arrived by
//! then counts. A run that has lost its lease writes nothing, because begin and commit both check it.

pub mod crash_points;
pub mod error;
pub mod metrics;
pub mod preview;

mod begin;
mod call;
mod commit;
mod estimate;
mod gate;
mod load;
mod notices;
mod prompt_cache;
mod sketch;

use std::sync::Arc;

use self::{
    begin::{
        exact_count,
        make_space::{self, SpaceRequest},
        open_turn::{BeginResult, NoRoom, OpenTurn},
        transaction::begin,
        window::EarlierBegins,
    },
    call::{
        batch::{
            self,
            look::{AnsweredBatch, Look},
            send::SendResult,
            wait::LookRecord,
        },
        calls, history_check,
        report::CallReport,
    },
    commit::{decision, measure, structured_result::StructuredResult, turn::Turn},
    crash_points::CrashPoint,
    error::{BeginRefusal, Error},
    gate::{budget, busy, chain, limits, paused, refuse},
    load::assignment::{self, Assignment, TaskRecord},
};
use super::Services;
use crate::{
    context::Pressure,
    domain::{
        failovers::SkippedEntry,
        tasks::{self, RunJoinedTurn, RunTurn},
    },
    providers::Request,
    queue::{End, HandlerResult, Run, Stop},
};

/// Leases of a turn whose shares other turns take before it begins again.
const MAX_LEASES: u32 = 2;

pub(super) async fn run(_: RunTurn, run: Run, services: Arc<Services>) -> HandlerResult {
    match take_turn(&run, &services).await {
        Err(Error::Ended) => Ok(End::Done),
        // A retry would not find a task either, and would block the conversation.
        Err(error @ Error::NoTask(_)) => {
            tracing::warn!(job.id = run.job_id(), "{error}; the job ends without a turn");
            Ok(End::Done)
        }
        ended => ended.map_err(|error| error.into_job_error(&run)),
    }
}

/// Runs a task that has waited for others: their results are placed before its prompt.
pub(super) async fn run_joined(
    job: RunJoinedTurn,
    run_of_job: Run,
    services: Arc<Services>,
) -> HandlerResult {
    run(RunTurn { asked: job.asked }, run_of_job, services).await
}

/// Runs the turn on the first usable entry of its agent's chain. Each entry refuses it at most once: the last resort waits or fails.
async fn take_turn(run: &Run, services: &Services) -> Result<End, Error> {
    let mut refused = Vec::new();
    loop {
        match Box::pin(take_turn_on_entry(run, services, &refused)).await {
            Err(Error::MovesOn(skipped)) => refused.push(*skipped),
            ended => return ended,
        }
    }
}

async fn take_turn_on_entry(
    run: &Run,
    services: &Services,
    refused: &[SkippedEntry],
) -> Result<End, Error> {
    let read = {
        let mut conn = run.pool().acquire().await.map_err(Error::undone)?;
        assignment::read(&mut conn, services, run.job_id()).await?
    };
    if let Some(task) = read.task_to_stop() {
        return refuse::end_cancelled(run, services, task).await;
    }
    if let Some(task) = read.batched_task() {
        match Box::pin(batch::look::look(run, services, task)).await? {
            Look::Ends(end) => return Ok(end),
            Look::Answered(answered) => {
                return Box::pin(take_answer(run, services, read, *answered)).await;
            }
        }
    }
    if let Some(task) = read.paused_task()
        && let Some(end) = paused::hold_for_pause(run, services, task).await?
    {
        return Ok(end);
    }
    if let Some((task, flow_id)) = read.paused_flow()
        && let Some(end) = paused::wait_for_flow(run, services, task, flow_id).await?
    {
        return Ok(end);
    }
    services.crash_points.pass(CrashPoint::BeforeResolve).map_err(Error::undone)?;
    let assigned = Assignment::of(services, read, refused, None, run.cancel()).await;
    let assignment = match assigned {
        Ok(assignment) => assignment,
        Err((task, refused)) => return refuse::refuse(run, services, &task, &refused).await,
    };
    metrics::begin_model(&assignment.route.provider_name, &assignment.route.model);
    let admitted = busy::admit(run, services, &assignment).await;
    let answered = match admitted {
        Ok(()) => Box::pin(answer_within_limits(run, services, &assignment)).await,
        Err(refused) => Err(refused),
    };
    settle(run, services, &assignment, answered).await
}

/// Ends the turn of a batch with its answer. The agent's file may have changed since the turn has begun: the model has to be in it.
async fn take_answer(
    run: &Run,
    services: &Services,
    read: TaskRecord,
    answered: AnsweredBatch,
) -> Result<End, Error> {
    let batch = answered.batch.clone();
    let begun_on = (batch.provider.as_str(), batch.model.as_str());
    let assigned = Assignment::of(services, read, &[], Some(begun_on), run.cancel()).await;
    let assignment = match assigned {
        Ok(assignment) => assignment,
        Err((task, refused)) if refused.again_after.is_some() => {
            let record = LookRecord { problem: Some(refused.why), ..LookRecord::default() };
            return batch::wait::put_off(run, services, &task, &batch, record).await;
        }
        // The next turn fails for the same reason, or begins on another model.
        Err((task, refused)) => {
            tracing::warn!(task.id = %task.id, "gave up the batch of a turn: {}", refused.why);
            return batch::look::give_up(run, services, &task, &batch).await;
        }
    };
    let taken = batch::answer::take_over(run, services, &assignment, answered).await?;
    let answered = Box::pin(answer(run, services, &assignment, Some(taken))).await;
    settle(run, services, &assignment, answered).await
}

/// Ends a run whose turn was not begun, or returns the end of the turn.
async fn settle(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    answered: Result<End, Error>,
) -> Result<End, Error> {
    let task = &assignment.task;
    match answered {
        // Cancelled while older messages were folded, for instance. A turn that was cancelled in its call has written
        // that itself.
        Err(Error::Refused(_) | Error::Undone(_)) if run.stop_reason() == Some(Stop::Cancelled) => {
            refuse::end_cancelled(run, services, task).await
        }
        Err(Error::Refused(refused)) => {
            if let Some(skipped) = chain::skip_entry(run, services, assignment, &refused).await? {
                return Err(Error::MovesOn(Box::new(skipped)));
            }
            let mut refused = assignment.name_skipped(refused);
            if let Some(refusal) = refused.limit {
                return limits::wait_for_limit(run, services, task, &refusal).await;
            }
            let budget = refused.budget.take();
            refused.budget = budget.map(|refusal| Box::new(assignment.complete_refusal(*refusal)));
            if let Some(refusal) = refused.budget.as_deref().filter(|refusal| refusal.waits()) {
                return budget::wait_for_budget(run, services, task, refusal).await;
            }
            refuse::refuse(run, services, task, &refused).await
        }
        ended => ended,
    }
}

/// Runs the turn. If it has no share of a rate limit, it leases one and begins again.
async fn answer_within_limits(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<End, Error> {
    for _ in 0..MAX_LEASES {
        match Box::pin(answer(run, services, assignment, None)).await {
            Err(Error::Refused(BeginRefusal { limit: Some(refusal), .. }))
                if limits::has_space_now(run, services, &refusal).await? => {}
            ended => return ended,
        }
    }
    Box::pin(answer(run, services, assignment, None)).await
}

/// Begins, calls and commits. Begins again if the estimate does not fit, first with an exact count and then after a
/// compaction, and calls again if the provider refuses the conversation as too long. Each time less history is kept,
/// three times at most for either reason ([`make_space::keep_after`]). `taken`: a turn whose first call was a batch, with its report.
async fn answer(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    mut taken: Option<(OpenTurn, Request, CallReport)>,
) -> Result<End, Error> {
    let mut before = EarlierBegins::default();
    loop {
        let began_at = services.clock.now();
        let step = match taken.take() {
            Some((mut opened, request, called)) => {
                let answered = (request, called);
                let called = calls::go_on(run, services, assignment, &mut opened, answered).await?;
                Step::Called(Box::new(opened), Box::new(called))
            }
            None => Box::pin(begin_and_call(run, services, assignment, &mut before)).await?,
        };
        let (mut opened, called) = match step {
            Step::Called(opened, called) => (opened, *called),
            Step::Again => continue,
            Step::Ends(end) => return Ok(end),
        };
        let called = history_check::check_history_seen(assignment.route.provider, &opened, called);
        call::limits::charge(&mut opened, assignment, &called);
        services.crash_points.pass(CrashPoint::AfterCall).map_err(Error::undone)?;
        let n_refused = before.n_refused + 1;
        let keep = make_space::keep_after(n_refused).filter(|_| opened.has_history);
        let structured = StructuredResult::of(assignment, &called);
        let turn = Turn {
            run,
            services,
            assignment,
            opened: &opened,
            called: &called,
            structured: &structured,
        };
        let fate = decision::decide(&turn, keep.is_some()).await?;
        let ended = turn.end(&fate).await?;
        measure::record_turn(&turn, &fate, began_at);
        if let Some(end) = ended {
            return Ok(end);
        }
        let session_id = opened.begun.session_id;
        let needed = SpaceRequest {
            around: opened.around,
            pressure: Pressure::Overflow,
            refused_tokens: Some(opened.estimated_tokens),
            keep: keep.unwrap_or_default(),
        };
        make_space::make(run, services, assignment, session_id, needed).await?;
        before = EarlierBegins { n_rooms: before.n_rooms.max(1), n_refused, counted: None };
    }
}

/// The result of a begin and a call.
enum Step {
    Called(Box<OpenTurn>, Box<CallReport>),
    /// The turn has to begin again.
    Again,
    /// The run has ended without an answer.
    Ends(End),
}

async fn begin_and_call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    before: &mut EarlierBegins,
) -> Result<Step, Error> {
    let task = &assignment.task;
    if before.n_rooms > 0 && tasks::is_asked_to_stop(run.pool(), task.id).await? {
        return refuse::end_cancelled(run, services, task).await.map(Step::Ends);
    }
    let (mut opened, request) = match begin(run, services, assignment, *before).await? {
        BeginResult::Opened(opened, request) => (opened, *request),
        BeginResult::NoRoom(no_room) => {
            if before.is_only_estimated()
                && let Some(counted) = exact_count::count(run, assignment, &no_room).await
            {
                before.counted = Some(counted);
                return Ok(Step::Again);
            }
            let NoRoom { session, around, pressure, .. } = *no_room;
            *before = EarlierBegins { n_rooms: before.n_rooms + 1, counted: None, ..*before };
            let keep = make_space::keep_after(before.n_rooms).unwrap_or_default();
            let needed = SpaceRequest { around, pressure, refused_tokens: None, keep };
            make_space::make(run, services, assignment, session.id, needed).await?;
            return Ok(Step::Again);
        }
    };
    services.crash_points.pass(CrashPoint::AfterBegin).map_err(Error::undone)?;
    let sending = batch::send::send(run, services, assignment, &mut opened, &request).await?;
    let called = match sending {
        SendResult::Waits(end) => return Ok(Step::Ends(end)),
        SendResult::Refused(called) => called,
        SendResult::Ordinary => {
            Box::new(calls::ask(run, services, assignment, &mut opened, request).await?)
        }
    };
    Ok(Step::Called(opened, called))
}
