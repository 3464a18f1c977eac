//! The calls of a turn whose tools this service carries out: the model asks for tools, is told their results, and is asked again.
//!
//! ```text
//! call ──▶ words                                            the turn ends
//!   ▲ └──▶ calls of tools ─▶ carried out one by one ─┐
//!   └── room · budget · somebody who wants it to stop ◀┘
//! ```
//!
//! Invariants:
//! - Nothing of it is stored before the turn's end; then all of it is, in the order in which it was said, in one commit with
//!   everything else: as its last call was sent it, so that it fits into the calls of later turns too. A worker that dies leaves the turn's notice, and what the tools did.
//! - A model's message and the results of all its calls are one group. Where the turn was stopped between them, the calls without
//!   a result are told of as what they are: perhaps done.
//! - The model decides nothing about how long this takes: the number of its calls is limited, the last one offers no tools, a
//!   call that comes again and again is not made, and each tool has a limit of time and of what it may say.
//! - A failure of a tool is never one of the turn: the model is told in words.

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

/// Asks until the model answers in words, or something ends the turn.
pub async fn ask(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    request: Request,
) -> Result<CallReport, Error> {
    let mut progress = Progress::new(run.pool(), services, opened.begun);
    if request.tools.is_empty() {
        let called =
            provider_call::call(run, services, assignment, request, &mut progress, None).await;
        progress.end().await;
        return Ok(called);
    }
    let mut steps = Steps::begin(run, services, assignment, opened, &request);
    let mut request = request;
    loop {
        let is_last = request.tools.is_empty();
        let called =
            provider_call::call(run, services, assignment, request, &mut progress, None).await;
        let next = match &called.result {
            Ok(outcome) if outcome.stop == StopReason::ToolCalls && !is_last => {
                steps.take(called, &mut progress).await
            }
            Err(error) if steps.has_acted() && is_too_long(error.class) => steps.squeeze().await,
            _ => {
                progress.end().await;
                return Ok(steps.end(called));
            }
        };
        services.crash_points.pass(CrashPoint::BetweenRounds).map_err(Error::undone)?;
        match next {
            Next::Ask(next) => request = *next,
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
