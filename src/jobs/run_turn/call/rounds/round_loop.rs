//! The rounds of a turn whose tools this service runs: the model calls tools, gets their results, and is called again.
//!
//! ```text
//! call ──▶ words                                            the turn ends
//!   ▲ └──▶ calls of tools ─▶ run one by one ─────────┐
//!   └── room · budget · cancellation requested? ◀────┘
//! ```
//!
//! Invariants:
//! - Nothing is stored before the turn's end. Then all of it is stored in one commit, in the order in which it was
//!   said.
//! - It is stored as the last call has sent it, so that it fits into the calls of later turns. A worker that dies
//!   leaves the notice of the turn, and the effects of the tools.
//! - A model's message and the results of all its calls are one group. If the turn was stopped between them, calls
//!   without a result are reported as possibly done.
//! - The model does not control the duration: the number of its calls is limited, the last one offers no tools, and
//!   repeated calls are refused. Each tool has a timeout and a limit for its result.
//! - A failed tool never fails the turn: the model gets the error as text.

use crate::{
    jobs::{
        Services,
        run_turn::{
            begin::open_turn::OpenTurn,
            call::{
                progress::Progress,
                provider_call,
                report::CallReport,
                rounds::step::{Next, Steps},
            },
            crash_points::CrashPoint,
            error::Error,
            load::assignment::Assignment,
        },
    },
    providers::{Class, Rebuild, Request, StopReason},
    queue::Run,
};

/// Calls the model until it answers in words, or the turn is stopped. `first` is the report of the first call, if it was made already.
pub async fn ask(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    request: Request,
    mut first: Option<CallReport>,
) -> Result<CallReport, Error> {
    let mut progress = Progress::new(run.pool(), services, opened.begun);
    if request.tools.is_empty() {
        let called = match first {
            Some(called) => called,
            None => {
                provider_call::call(run, services, assignment, request, &mut progress, None).await
            }
        };
        progress.end().await;
        return Ok(called);
    }
    let mut steps = Steps::begin(run, services, assignment, opened, &request);
    let mut request = request;
    loop {
        let is_last = request.tools.is_empty();
        let called = match first.take() {
            Some(called) => called,
            None => {
                provider_call::call(run, services, assignment, request, &mut progress, None).await
            }
        };
        let next = match &called.result {
            Ok(outcome) if outcome.stop == StopReason::ToolCalls && !is_last => {
                steps.process_report(called, &mut progress).await
            }
            Err(error) if steps.has_acted() && is_too_long(error.class) => {
                steps.shrink_call(called).await
            }
            _ => {
                progress.end().await;
                return Ok(steps.end(called));
            }
        };
        services.crash_points.pass(CrashPoint::BetweenRounds).map_err(Error::undone)?;
        match next {
            Next::Ask(next) => {
                steps.charge_limits();
                request = *next;
            }
            Next::End(called) => {
                progress.end().await;
                return Ok(steps.end(*called));
            }
        }
    }
}

fn is_too_long(class: Class) -> bool {
    matches!(class, Class::Rebuild { reason: Rebuild::Overflow | Rebuild::Truncated })
}
