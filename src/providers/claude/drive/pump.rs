//! Moves bytes between the child and [`TurnOutput`], until something happens.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{LiveEvents, TurnOutput, Watch};
use crate::providers::{
    claude::launch::{Child, Exit},
    stream_json::{Decoder, Event, TooMuch},
};

/// Capacity of a pipe on Linux.
const PIECE_BYTES: usize = 64 << 10;

pub(super) struct Pump<'a, 'e> {
    child: Child,
    /// Bytes to write. The child may not read before it has printed something.
    unsent: Vec<u8>,
    n_sent: usize,
    decoder: Decoder,
    piece: Vec<u8>,
    stderr: Vec<u8>,
    stderr_max_bytes: usize,
    output_is_open: bool,
    errors_are_open: bool,
    last_line: Option<Instant>,
    began: Instant,
    live: LiveEvents<'e>,
    heard: &'a mut TurnOutput,
}

/// Reason why the pump stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At least one line came.
    Line,
    Result,
    EndOfOutput,
    Deadline,
    Cancelled,
    TooMuch(TooMuch),
}

enum PumpStep {
    Output(usize),
    Errors(usize),
    Sent(Option<usize>),
    Deadline,
    Cancelled,
}

impl<'a, 'e> Pump<'a, 'e> {
    pub(super) fn new(
        child: Child,
        line: Vec<u8>,
        watch: &Watch,
        live: LiveEvents<'e>,
        heard: &'a mut TurnOutput,
    ) -> Self {
        Self {
            child,
            unsent: line,
            n_sent: 0,
            decoder: Decoder::within(watch.limits),
            piece: vec![0; PIECE_BYTES],
            stderr: vec![0; PIECE_BYTES.min(watch.stderr_max_bytes.max(1))],
            stderr_max_bytes: watch.stderr_max_bytes,
            output_is_open: true,
            errors_are_open: true,
            last_line: None,
            began: Instant::now(),
            live,
            heard,
        }
    }

    pub(super) fn last_line(&self) -> Option<Instant> {
        self.last_line
    }

    pub(super) fn has_result(&self) -> bool {
        self.heard.result.is_some()
    }

    pub(super) fn has_server_list(&self) -> bool {
        self.heard.has_told_servers
    }

    pub(super) fn is_missing_any(&self, servers: &[String]) -> bool {
        self.heard.find_missing_server(servers).is_some()
    }

    pub(super) fn into_child(self) -> Child {
        self.child
    }

    /// Runs until something happens. With `Stop::Line` as `until`, each read that completes a line ends it; otherwise it reads on.
    pub(super) async fn run(
        &mut self,
        deadline: Instant,
        until: Stop,
        cancel: &CancellationToken,
    ) -> Stop {
        loop {
            if !self.output_is_open {
                return Stop::EndOfOutput;
            }
            let had_result = self.heard.result.is_some();
            let stop = match self.step(deadline, cancel).await {
                PumpStep::Cancelled => Some(Stop::Cancelled),
                PumpStep::Deadline => Some(Stop::Deadline),
                PumpStep::Output(n_bytes) => self.handle_output(n_bytes),
                PumpStep::Errors(n_bytes) => {
                    self.keep_stderr(n_bytes);
                    None
                }
                PumpStep::Sent(n_bytes) => {
                    self.note_sent(n_bytes);
                    None
                }
            };
            match stop {
                _ if !had_result && self.heard.result.is_some() => return Stop::Result,
                Some(Stop::Line) if until != Stop::Line => {}
                Some(stop) => return stop,
                None => {}
            }
        }
    }

    /// Reads to the end of the output and waits until the process has ended.
    pub(super) async fn wait_for_exit(
        &mut self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Exit, Stop> {
        loop {
            match self.run(deadline, Stop::EndOfOutput, cancel).await {
                Stop::EndOfOutput => break,
                Stop::Line | Stop::Result => {}
                stop => return Err(stop),
            }
        }
        loop {
            let Self { child, stderr, errors_are_open, .. } = self;
            let waited = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Stop::Cancelled),
                waited = child.wait(stderr, *errors_are_open) => waited,
                () = sleep_until(deadline) => return Err(Stop::Deadline),
            };
            match waited {
                Ok(exit) => return Ok(exit),
                Err(n_bytes) => self.keep_stderr(n_bytes),
            }
        }
    }

    pub(super) fn close_input(&mut self) {
        self.child.stdin = None;
    }

    /// Ignores tool results from now on: they come because the turn was told to stop.
    pub(super) fn stop_taking_results(&mut self) {
        self.heard.answer.stop_taking_results();
    }

    pub(super) fn terminate(&self) {
        self.child.terminate();
    }

    /// Sends a line after the earlier ones. Returns false while a line is half written, and once the input is closed.
    pub(super) fn send_line(&mut self, line: &[u8]) -> bool {
        let is_free = self.n_sent == self.unsent.len() && self.child.stdin.is_some();
        if is_free {
            self.unsent = line.to_vec();
            self.n_sent = 0;
        }
        is_free
    }

    async fn step(&mut self, deadline: Instant, cancel: &CancellationToken) -> PumpStep {
        let Self { child, unsent, n_sent, piece, stderr, errors_are_open, .. } = self;
        let unsent = &unsent[*n_sent..];
        tokio::select! {
            biased;
            () = cancel.cancelled() => PumpStep::Cancelled,
            // Checked before the output: a child that prints without a pause must not exceed its time.
            () = sleep_until(deadline) => PumpStep::Deadline,
            n = child.stdout.read(piece) => PumpStep::Output(n.unwrap_or(0)),
            n = child.stderr.read(stderr), if *errors_are_open => PumpStep::Errors(n.unwrap_or(0)),
            n = write(&mut child.stdin, unsent), if !unsent.is_empty() => PumpStep::Sent(n),
        }
    }

    fn handle_output(&mut self, n_bytes: usize) -> Option<Stop> {
        self.output_is_open = n_bytes > 0;
        let heard = match self.decode(n_bytes) {
            Ok(n_lines) => n_lines > 0,
            Err(too_much) => return Some(Stop::TooMuch(too_much)),
        };
        match (self.output_is_open, heard) {
            (false, _) => Some(Stop::EndOfOutput),
            (true, true) => Some(Stop::Line),
            (true, false) => None,
        }
    }

    fn decode(&mut self, n_bytes: usize) -> Result<usize, TooMuch> {
        let Self { decoder, piece, heard, live, began, last_line, .. } = self;
        let mut n_lines = 0;
        decoder.push(&piece[..n_bytes])?;
        while let Some(event) = decoder.next_event()? {
            n_lines += 1;
            // An answer to a control request does not begin the turn.
            if !matches!(event, Event::Controlled(_)) {
                *last_line = Some(Instant::now());
            }
            live.show(&event);
            heard.apply_event(event, *began);
            if let Some(used) = heard.usage_if_changed() {
                live.used(used);
            }
        }
        if n_bytes == 0
            && let Some(event) = decoder.last_event()
        {
            n_lines += 1;
            heard.apply_event(event, *began);
        }
        Ok(n_lines)
    }

    /// Keeps the end of standard error.
    fn keep_stderr(&mut self, n_bytes: usize) {
        self.errors_are_open = n_bytes > 0;
        let kept = &mut self.heard.stderr;
        kept.extend_from_slice(&self.stderr[..n_bytes]);
        let n_over = kept.len().saturating_sub(self.stderr_max_bytes);
        kept.drain(..n_over);
    }

    fn note_sent(&mut self, n_bytes: Option<usize>) {
        match n_bytes {
            Some(n_bytes) => self.n_sent += n_bytes,
            // The child does not read any more. Its output or its exit will tell why.
            None => self.n_sent = self.unsent.len(),
        }
    }
}

async fn write(stdin: &mut Option<tokio::process::ChildStdin>, bytes: &[u8]) -> Option<usize> {
    stdin.as_mut()?.write(bytes).await.ok()
}
