//! One turn of a running CLI, from the prompt to the end of the process.
//!
//! Standard input stays open until the result has come: closed earlier, the CLI cuts its output off at a pipe's length
//! and says success. Closed at once then, because the end of its input is what makes the CLI store the turn: measured,
//! 3 ms instead of up to 95.
//!
//! Nothing here judges. What came is in [`Heard`], how it ended in [`Ended`], and the verdict is somebody else's.
//!
//! Dropped at any point, the child and all that it started are killed: the pipes are what its guard watches.

mod answer;
mod heard;
mod input;
mod ladder;
mod live;
mod pump;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use self::{answer::Answer, heard::Heard};
use self::{
    ladder::Ladder,
    live::Live,
    pump::{Pump, Stop},
};
use super::{
    launch::{Child, Exit},
    secrets::Secrets,
};
use crate::providers::{
    EventSink,
    stream_json::{Limits, TooMuch},
};

/// How long what may take, and how much may come.
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

/// How the process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(Exit),
    /// It had said its result, and did not end.
    Hung,
    Cancelled,
    /// A server that the turn needs is not there.
    Unserved,
    /// No line came at all.
    NeverBegan,
    /// No further line came.
    Silent,
    TooLong,
    TooMuch(TooMuch),
}

/// Sends the prompt, hears the answer, and sees the process end. Without all servers of `required` no prompt is sent: the CLI would ask
/// the model all the same, which knows of none of their tools.
pub(super) async fn drive(
    child: Child,
    (prompt, required): (&str, &[String]),
    watch: &Watch,
    secrets: &Secrets,
    events: &mut EventSink,
    cancel: &CancellationToken,
) -> (Heard, Ended) {
    let began = Instant::now();
    let mut heard = Heard::default();
    let prompt = input::user(prompt, Uuid::new_v4());
    let (first, then) = match required.is_empty() {
        true => (prompt, None),
        false => (input::servers(), Some(prompt)),
    };
    let mut pump = Pump::new(child, first, watch, Live::new(events, secrets), &mut heard);
    let ended = match then {
        None => turn(&mut pump, required, watch, began, cancel).await,
        Some(prompt) => match served(&mut pump, required, watch, began, cancel).await {
            Some(ended) => ended,
            None => {
                pump.interject(&prompt);
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

/// Waits until the CLI says that all of these are there. Otherwise how it ended: nobody was asked anything, so nobody is told to stop.
async fn served(
    pump: &mut Pump<'_, '_>,
    required: &[String],
    watch: &Watch,
    began: Instant,
    cancel: &CancellationToken,
) -> Option<Ended> {
    let until = began + watch.first_line.min(watch.total);
    while !pump.has_told_servers() {
        match pump.run(until, Stop::Line, cancel).await {
            Stop::Line => {}
            Stop::Deadline => return Some(Ended::NeverBegan),
            Stop::Cancelled => return Some(Ended::Cancelled),
            Stop::TooMuch(too_much) => return Some(Ended::TooMuch(too_much)),
            Stop::Result | Stop::EndOfOutput => return Some(exit(pump, watch, cancel).await),
        }
    }
    pump.lacks(required).then_some(Ended::Unserved)
}

async fn turn(
    pump: &mut Pump<'_, '_>,
    required: &[String],
    watch: &Watch,
    began: Instant,
    cancel: &CancellationToken,
) -> Ended {
    let total = began + watch.total;
    let result = loop {
        let (patience, silent) = match pump.last_line() {
            None => (began + watch.first_line, Ended::NeverBegan),
            Some(last) => (last + watch.idle, Ended::Silent),
        };
        match pump.run(patience.min(total), Stop::Line, cancel).await {
            Stop::Line if pump.lacks(required) => break Err(Ended::Unserved),
            Stop::Line => {}
            Stop::Deadline if Instant::now() >= total => break Err(Ended::TooLong),
            Stop::Deadline => break Err(silent),
            Stop::Cancelled => break Err(Ended::Cancelled),
            Stop::TooMuch(too_much) => break Err(Ended::TooMuch(too_much)),
            Stop::Result | Stop::EndOfOutput => break Ok(()),
        }
    };
    match result {
        Ok(()) => exit(pump, watch, cancel).await,
        // What sends too much is not asked politely: nobody reads it any more. And what would go on without its tools is stopped
        // before the model has said a word.
        Err(ended @ (Ended::TooMuch(_) | Ended::Unserved)) => ended,
        Err(ended) => {
            pump.stop_taking_results();
            Ladder::of(watch).climb(pump).await;
            ended
        }
    }
}

/// The result is there, or the output has ended: the process has to end as well.
async fn exit(pump: &mut Pump<'_, '_>, watch: &Watch, cancel: &CancellationToken) -> Ended {
    pump.close_input();
    // A whole answer counts, whoever asks to stop now; it takes the process some milliseconds to end.
    let nobody = CancellationToken::new();
    let cancel = if pump.has_result() { &nobody } else { cancel };
    match pump.exit(Instant::now() + watch.exit, cancel).await {
        Ok(exit) => Ended::Exited(exit),
        Err(Stop::Cancelled) => {
            Ladder::of(watch).climb(pump).await;
            Ended::Cancelled
        }
        Err(Stop::TooMuch(too_much)) => Ended::TooMuch(too_much),
        Err(_) => Ended::Hung,
    }
}
