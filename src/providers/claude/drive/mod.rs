//! Drives one turn of a running CLI, from the prompt to the end of the process.
//!
//! Standard input stays open until the result has come. If it is closed earlier, the CLI cuts its output off at a pipe's length and reports
//! success. After the result it is closed at once, because the end of its input makes the CLI store the turn: measured, 3 ms instead of up
//! to 95.
//!
//! This module does not judge. [`TurnOutput`] holds the output, [`EndReason`] the end of the process, and `verdict` judges both.
//!
//! If the call is dropped at any point, the child and everything that it started are killed: their guard watches the pipes.

mod answer;
mod input;
mod live;
mod pump;
mod stop_sequence;
mod turn_output;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use self::{
    answer::{Answer, text_of, to_tool_call},
    turn_output::TurnOutput,
};
use self::{
    live::LiveEvents,
    pump::{Pump, Stop},
    stop_sequence::StopSequence,
};
use super::{
    launch::{Child, Exit},
    secrets::Secrets,
};
use crate::providers::{
    EventSink,
    stream_json::{Limits, TooMuch},
};

/// Timeouts and size limits of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    pub first_line: Duration,
    pub idle: Duration,
    pub total: Duration,
    pub exit: Duration,
    pub interrupt: Duration,
    pub end_of_input: Duration,
    pub terminate: Duration,
    pub limits: Limits,
    pub stderr_max_bytes: usize,
}

/// Reason for the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    Exited(Exit),
    /// The result had come, but the process did not exit.
    Hung,
    Cancelled,
    /// A server that the turn needs is missing.
    Unserved,
    /// No line came before the timeout of the first line.
    NeverBegan,
    /// No further line came before the idle timeout.
    Silent,
    TooLong,
    TooMuch(TooMuch),
}

/// Sends the prompt, records the answer and waits for the end of the process. If a server of `required` is missing, the prompt is not sent:
/// the CLI would call the model without the tools of that server.
pub(super) async fn drive(
    child: Child,
    (prompt, required): (&str, &[String]),
    watch: &Watch,
    secrets: &Secrets,
    events: &mut EventSink,
    cancel: &CancellationToken,
) -> (TurnOutput, EndReason) {
    let began = Instant::now();
    let mut heard = TurnOutput::default();
    let prompt = input::prompt_line(prompt, Uuid::new_v4());
    let (first, then) = match required.is_empty() {
        true => (prompt, None),
        false => (input::servers_request(), Some(prompt)),
    };
    let mut pump = Pump::new(child, first, watch, LiveEvents::new(events, secrets), &mut heard);
    let ended = match then {
        None => turn(&mut pump, required, watch, began, cancel).await,
        Some(prompt) => match wait_for_servers(&mut pump, required, watch, began, cancel).await {
            Some(ended) => ended,
            None => {
                pump.send_line(&prompt);
                turn(&mut pump, required, watch, began, cancel).await
            }
        },
    };
    let child = pump.into_child();
    child.kill().await;
    heard.total = began.elapsed();
    heard.clean(secrets);
    (heard, ended)
}

/// Waits until the CLI reports that all required servers are connected. Otherwise returns the end of the process. The model was not called
/// yet, so there is nothing to interrupt.
async fn wait_for_servers(
    pump: &mut Pump<'_, '_>,
    required: &[String],
    watch: &Watch,
    began: Instant,
    cancel: &CancellationToken,
) -> Option<EndReason> {
    let until = began + watch.first_line.min(watch.total);
    while !pump.has_server_list() {
        match pump.run(until, Stop::Line, cancel).await {
            Stop::Line => {}
            Stop::Deadline => return Some(EndReason::NeverBegan),
            Stop::Cancelled => return Some(EndReason::Cancelled),
            Stop::TooMuch(too_much) => return Some(EndReason::TooMuch(too_much)),
            Stop::Result | Stop::EndOfOutput => return Some(exit(pump, watch, cancel).await),
        }
    }
    pump.is_missing_any(required).then_some(EndReason::Unserved)
}

async fn turn(
    pump: &mut Pump<'_, '_>,
    required: &[String],
    watch: &Watch,
    began: Instant,
    cancel: &CancellationToken,
) -> EndReason {
    let total = began + watch.total;
    let result = loop {
        let (patience, silent) = match pump.last_line() {
            None => (began + watch.first_line, EndReason::NeverBegan),
            Some(last) => (last + watch.idle, EndReason::Silent),
        };
        match pump.run(patience.min(total), Stop::Line, cancel).await {
            Stop::Line if pump.is_missing_any(required) => break Err(EndReason::Unserved),
            Stop::Line => {}
            Stop::Deadline if Instant::now() >= total => break Err(EndReason::TooLong),
            Stop::Deadline => break Err(silent),
            Stop::Cancelled => break Err(EndReason::Cancelled),
            Stop::TooMuch(too_much) => break Err(EndReason::TooMuch(too_much)),
            Stop::Result | Stop::EndOfOutput => break Ok(()),
        }
    };
    match result {
        Ok(()) => exit(pump, watch, cancel).await,
        // A process that prints too much is not stopped in steps, because its output is no longer read. A turn without its tools is stopped
        // before the model answers.
        Err(ended @ (EndReason::TooMuch(_) | EndReason::Unserved)) => ended,
        Err(ended) => {
            pump.stop_taking_results();
            StopSequence::of(watch).run_steps(pump).await;
            ended
        }
    }
}

/// Waits for the process to exit, after its result or the end of its output.
async fn exit(pump: &mut Pump<'_, '_>, watch: &Watch, cancel: &CancellationToken) -> EndReason {
    pump.close_input();
    // A complete answer counts, even if the turn is cancelled now: the process needs only some milliseconds to exit.
    let never = CancellationToken::new();
    let cancel = if pump.has_result() { &never } else { cancel };
    match pump.wait_for_exit(Instant::now() + watch.exit, cancel).await {
        Ok(exit) => EndReason::Exited(exit),
        Err(Stop::Cancelled) => {
            StopSequence::of(watch).run_steps(pump).await;
            EndReason::Cancelled
        }
        Err(Stop::TooMuch(too_much)) => EndReason::TooMuch(too_much),
        Err(_) => EndReason::Hung,
    }
}
