//! The visible progress of a turn, and its partial output if its worker is lost.
//!
//! About once a second, one row with all new output goes to the feed. It never blocks the call: the end of the turn waits
//! shortly for the last row. With it, the output so far replaces what was stored beside the turn:
//! at most once a second, only if there is more. Both are written only while the run has its lease. The first write
//! that finds another run there is the last one.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};

use crate::{
    causes::causes,
    domain::{
        feed, ids, messages, text,
        turn_phases::{self, StartedTurn},
        turns,
    },
    jobs::{Services, run_turn::notices},
    providers::{Event, Status},
    transcript::Role,
};

const EVERY: Duration = Duration::from_secs(1);
/// Longest time that a finished answer waits for a row.
const LAST_WAIT: Duration = Duration::from_millis(200);
/// Characters of an answer in one row of the feed.
const MAX_CHARS: usize = 2000;

pub struct Progress<'a> {
    pool: &'a PgPool,
    services: &'a Services,
    begun: StartedTurn,
    tick: Interval,
    /// Output of the current answer.
    pub arrived: String,
    /// Bytes of `arrived` that the feed has.
    n_shown_bytes: usize,
    /// Output of earlier answers in this turn.
    earlier: String,
    /// True if there is output that is not stored beside the turn.
    has_unstored: bool,
    /// True if a second has passed since the last row.
    is_due: bool,
    status: Option<Status>,
    /// The tool that the model is calling.
    tool: Option<String>,
    shown_tool: Option<String>,
    /// Tools that have ended since the last row.
    ended: Vec<Value>,
    shown_status: Option<Status>,
    writing: Option<ProgressWrite<'a>>,
    /// True if another run has the turn, or has ended it.
    is_overtaken: bool,
}

/// A write that is running.
type ProgressWrite<'a> = Pin<Box<dyn Future<Output = WriteOutcome> + Send + 'a>>;

struct WriteOutcome {
    /// False if the output has to be written again.
    is_stored: bool,
    is_overtaken: bool,
}

impl<'a> Progress<'a> {
    pub fn new(pool: &'a PgPool, services: &'a Services, begun: StartedTurn) -> Self {
        let mut tick = interval_at(Instant::now() + EVERY, EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            pool,
            services,
            begun,
            tick,
            arrived: String::new(),
            n_shown_bytes: 0,
            earlier: String::new(),
            has_unstored: false,
            is_due: false,
            status: None,
            tool: None,
            shown_tool: None,
            ended: Vec::new(),
            shown_status: None,
            writing: None,
            is_overtaken: false,
        }
    }

    /// Moves the output of the previous answer to `earlier`.
    pub fn begin_call(&mut self) {
        if !self.arrived.trim().is_empty() {
            self.earlier.push_str(&self.arrived);
            self.earlier.push_str("\n\n");
            keep_end(&mut self.earlier);
        }
        self.arrived.clear();
        (self.n_shown_bytes, self.tool) = (0, None);
    }

    pub fn tool_begins(&mut self, name: &str) {
        self.tool = Some(name.to_owned());
    }

    /// Writes a row at once, unless one is being written.
    pub fn tool_ended(&mut self, name: &str, took: Duration, is_error: bool) {
        let name = text::make_storable(name.to_owned());
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.ended.push(json!({ "name": name, "took_ms": took_ms, "is_error": is_error }));
        self.tool = None;
        self.write();
    }

    /// Runs `work`, and writes progress meanwhile.
    pub async fn run_with_progress<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.write_when_due() => {}
            }
        }
    }

    pub fn apply_event(&mut self, event: Event) {
        match event {
            Event::Sent(_)
            | Event::Limits(_)
            | Event::Started { .. }
            | Event::Returned
            | Event::Used(_) => {}
            Event::Text(text) => {
                self.has_unstored |= !text.trim().is_empty();
                self.arrived.push_str(&text);
            }
            Event::Status(status) => (self.status, self.tool) = (Some(status), None),
            Event::Calling { tool } => self.tool = Some(tool),
        }
    }

    /// Starts a row with new output, unless one is being written.
    fn write(&mut self) {
        if self.writing.is_some() || self.is_overtaken {
            return;
        }
        let is_new = self.arrived.len() > self.n_shown_bytes
            || self.status != self.shown_status
            || self.tool != self.shown_tool
            || !self.ended.is_empty();
        let event = is_new.then(|| self.event());
        let output = (std::mem::take(&mut self.is_due) && self.has_unstored).then(|| self.output());
        if event.is_none() && output.is_none() {
            return;
        }
        self.has_unstored &= output.is_none();
        (self.n_shown_bytes, self.shown_status) = (self.arrived.len(), self.status);
        self.shown_tool.clone_from(&self.tool);
        self.ended.clear();
        let (pool, begun, now) = (self.pool, self.begun, self.services.clock.now());
        let write = async move {
            let events = event.as_slice();
            let stored =
                turn_phases::store_progress(pool, &begun, output.as_ref(), events, now).await;
            if let Err(error) = &stored {
                let error = causes(error);
                tracing::debug!(
                    error,
                    "cannot store the progress of a turn: the next write includes its output"
                );
            }
            WriteOutcome {
                is_stored: stored.is_ok() || output.is_none(),
                is_overtaken: stored.is_ok_and(|is_running| !is_running),
            }
        };
        self.writing = Some(write.boxed());
    }

    /// Builds the message that the output becomes if the worker is lost.
    fn output(&self) -> messages::New {
        let mut text = format!("{}{}", self.earlier, self.arrived);
        keep_end(&mut text);
        notices::message(ids::new_at(self.services.clock.now()), Role::Assistant, text)
    }

    fn event(&self) -> feed::New {
        let new = &self.arrived[self.n_shown_bytes..];
        let shown: String = new.chars().take(MAX_CHARS).collect();
        let begun = &self.begun;
        feed::New {
            campaign_id: Some(begun.campaign_id),
            task_id: Some(begun.task_id),
            session_id: Some(begun.session_id),
            kind: feed::Kind::TurnProgress,
            data: json!({
                "turn": begun.turn,
                "status": self.status.map(|status| match status {
                    Status::Thinking => "thinking",
                    Status::Answering => "answering",
                }),
                "tool": self.tool.as_deref().map(|tool| text::make_storable(tool.to_owned())),
                "ended_tools": self.ended,
                "bytes": self.arrived.len(),
                "cut": shown.len() < new.len(),
                "text": text::make_storable(shown),
            }),
        }
    }

    /// Writes new output about once a second. To be polled in a loop, beside the call.
    pub async fn write_when_due(&mut self) {
        tokio::select! {
            outcome = wait_until_written(&mut self.writing) => {
                self.writing = None;
                self.has_unstored |= !outcome.is_stored;
                self.is_overtaken |= outcome.is_overtaken;
                // The second passed, or a tool ended, while the last row was written.
                if self.is_due {
                    self.tick.reset();
                }
                if self.is_due || !self.ended.is_empty() {
                    self.write();
                }
            }
            _ = self.tick.tick() => {
                self.is_due = true;
                self.write();
            }
        }
    }

    /// Waits shortly for a row that is being written, so that none arrives after the end of the turn, and for the tools that have ended
    /// meanwhile.
    pub async fn end(&mut self) {
        // The next turn of the session removes a row that arrives later.
        _ = timeout(LAST_WAIT, self.write_last()).await;
    }

    async fn write_last(&mut self) {
        if let Some(writing) = self.writing.take() {
            self.is_overtaken |= writing.await.is_overtaken;
        }
        if !self.ended.is_empty() && !self.is_overtaken {
            // The end of the turn stores the output.
            self.is_due = false;
            self.write();
            wait_until_written(&mut self.writing).await;
            self.writing = None;
        }
    }
}

/// Keeps the end of the text: a continuation needs the last words.
fn keep_end(text: &mut String) {
    let too_long = text.len().saturating_sub(turns::PARTIAL_OUTPUT_MAX_BYTES);
    text.drain(..text.ceil_char_boundary(too_long));
}

/// Returns when the current row was written.
async fn wait_until_written(writing: &mut Option<ProgressWrite<'_>>) -> WriteOutcome {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}
