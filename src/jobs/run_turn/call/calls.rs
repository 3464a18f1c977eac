//! The call of a turn, or its rounds of calls.

use super::{conversation, report::CallReport, rounds::round_loop};
use crate::{
    jobs::{
        Services,
        run_turn::{begin::open_turn::OpenTurn, error::Error, load::assignment::Assignment},
    },
    providers::Request,
    queue::Run,
};

/// Makes all calls of the turn, and runs the tools between them.
pub async fn ask(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    request: Request,
) -> Result<CallReport, Error> {
    if !assignment.route.provider.holds_session() {
        // Boxed, because many turns run at once and most of them call no tools.
        return Box::pin(round_loop::ask(run, services, assignment, opened, request, None)).await;
    }
    Ok(match conversation::build_conversation(run, services, assignment, opened).await {
        Ok(conversation) => {
            let request = Request { conversation, ..request };
            Box::pin(conversation::call(run, services, assignment, opened, request)).await
        }
        Err(error) => CallReport::before_call(error, services.clock.now()),
    })
}

/// Goes on after a first call whose report was read from a batch: runs the tools that it asks for, and makes the further calls as usual.
pub async fn go_on(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    (request, called): (Request, CallReport),
) -> Result<CallReport, Error> {
    Box::pin(round_loop::ask(run, services, assignment, opened, request, Some(called))).await
}
