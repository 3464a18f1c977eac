//! What people can watch of a turn while it runs.
//!
//! What arrives goes to the feed about once a second, in one row however much it was, and never holds up the call: a row that is
//! still on its way when the turn ends is given up.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::{
    causes::causes,
    domain::{feed, text, turns::Begun},
    jobs::Services,
    providers::{Event, Status},
};

const EVERY: Duration = Duration::from_secs(1);
/// The most of an answer that one row of the feed shows.
const MAX_CHARS: usize = 2000;

pub(super) struct Progress<'a> {
    pool: &'a PgPool,
    services: &'a Services,
    begun: Begun,
    tick: Interval,
    /// Of the answer that is being written.
    pub(super) arrived: String,
    /// How much of it the feed has.
    n_shown_bytes: usize,
    status: Option<Status>,
    /// What the model has begun to use since.
    tool: Option<String>,
    shown_tool: Option<String>,
    /// What has ended since the last row.
    ended: Vec<Value>,
    shown_status: Option<Status>,
    writing: Option<Writing<'a>>,
}

type Writing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<'a> Progress<'a> {
    pub(super) fn new(pool: &'a PgPool, services: &'a Services, begun: Begun) -> Self {
        let mut tick = interval_at(Instant::now() + EVERY, EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            pool,
            services,
            begun,
            tick,
            arrived: String::new(),
            n_shown_bytes: 0,
            status: None,
            tool: None,
            shown_tool: None,
            ended: Vec::new(),
            shown_status: None,
            writing: None,
        }
    }

    /// What had arrived of the answer before has become a part of the turn.
    pub(super) fn begin_call(&mut self) {
        self.arrived.clear();
        (self.n_shown_bytes, self.tool) = (0, None);
    }

    pub(super) fn tool_begins(&mut self, name: &str) {
        self.tool = Some(name.to_owned());
    }

    /// Is told at once, unless a row is on its way.
    pub(super) fn tool_ended(&mut self, name: &str, took: Duration, is_error: bool) {
        let name = text::storable(name.to_owned());
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.ended.push(json!({ "name": name, "took_ms": took_ms, "is_error": is_error }));
        self.tool = None;
        self.write();
    }

    /// Lets something run that is told of here.
    pub(super) async fn beside<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.step() => {}
            }
        }
    }

    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Started { .. } | Event::Returned => {}
            Event::Text(text) => self.arrived.push_str(&text),
            Event::Status(status) => (self.status, self.tool) = (Some(status), None),
            Event::Calling { tool } => self.tool = Some(tool),
        }
    }

    /// Begins a row with what is new, unless the last one is still on its way.
    fn write(&mut self) {
        let is_new = self.arrived.len() > self.n_shown_bytes
            || self.status != self.shown_status
            || self.tool != self.shown_tool
            || !self.ended.is_empty();
        if !is_new || self.writing.is_some() {
            return;
        }
        let event = self.event();
        (self.n_shown_bytes, self.shown_status) = (self.arrived.len(), self.status);
        self.shown_tool.clone_from(&self.tool);
        self.ended.clear();
        let (pool, now) = (self.pool, self.services.clock.now());
        let write = async move {
            if let Err(error) = feed::append(pool, &[event], now).await {
                tracing::debug!(
                    error = causes(&error),
                    "the progress of a turn is not in the feed"
                );
            }
        };
        self.writing = Some(write.boxed());
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
                "tool": self.tool.as_deref().map(|tool| text::storable(tool.to_owned())),
                "ended_tools": self.ended,
                "bytes": self.arrived.len(),
                "cut": shown.len() < new.len(),
                "text": text::storable(shown),
            }),
        }
    }

    /// To be waited for over and over, beside what is told of: writes what is new about once a second.
    pub(super) async fn step(&mut self) {
        tokio::select! {
            () = written(&mut self.writing) => self.writing = None,
            _ = self.tick.tick() => self.write(),
        }
    }
}

/// Returns when the row that is on its way has arrived.
async fn written(writing: &mut Option<Writing<'_>>) {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}
