//! The call itself, and what people can watch of it while it runs.
//!
//! No transaction is open here. What arrives goes to the feed about once a second, in one row however much it was, and
//! never holds up the call: a row that is still on its way when the answer is complete is given up.

use std::{pin::Pin, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use serde_json::json;
use sqlx::PgPool;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{assignment::Assignment, begin::Opened, interruption};
use crate::{
    causes::causes,
    domain::{feed, text},
    jobs::Services,
    providers::{self, Event, EventSink, Outcome, Request, Status},
    queue::Run,
};

/// What came of a call.
pub(super) struct Called {
    pub(super) result: Result<Outcome, providers::Error>,
    /// What had arrived of the answer.
    pub(super) arrived: String,
    pub(super) called_at: DateTime<Utc>,
    pub(super) took: Duration,
    /// The model did not see its history, as far as its counts show.
    pub(super) is_doubted: bool,
    /// Stopped between two rounds, because somebody had asked for that.
    pub(super) is_stopped: bool,
}

impl Called {
    /// Something was in the way before the provider was asked.
    pub(super) fn not_made(error: providers::Error, at: DateTime<Utc>) -> Self {
        Self {
            result: Err(error.not_made()),
            arrived: String::new(),
            called_at: at,
            took: Duration::ZERO,
            is_doubted: false,
            is_stopped: false,
        }
    }
}

/// Events that may wait between two looks; more are merged.
const N_EVENTS: usize = 256;
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The most of an answer that one row of the feed shows.
const PROGRESS_MAX_CHARS: usize = 2000;

pub(super) async fn call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &Opened,
    request: Request,
) -> Called {
    let (called_at, began) = (services.clock.now(), Instant::now());
    let (sink, mut events) = EventSink::channel(N_EVENTS);
    let stop = run.cancel().child_token();
    let mut answer = assignment.route.provider.run(request, sink, stop.clone());
    let mut asking = interruption::Asking::new(run.pool(), assignment.task.id);
    let mut is_stopped = false;
    let mut progress = Progress::new(run.pool(), services, opened);
    let mut tick = interval_at(began + PROGRESS_EVERY, PROGRESS_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let result = loop {
        tokio::select! {
            biased;
            result = &mut answer => break result,
            Some(event) = events.recv() => match event {
                Event::Returned => asking.ask(),
                event => progress.take(event),
            },
            is_asked = asking.answered() => {
                is_stopped |= is_asked;
                if is_asked {
                    stop.cancel();
                }
            }
            () = progress.written() => {}
            _ = tick.tick() => progress.write(),
        }
    };
    while let Ok(event) = events.try_recv() {
        progress.take(event);
    }
    Called {
        result,
        arrived: progress.arrived,
        called_at,
        took: began.elapsed(),
        is_doubted: false,
        is_stopped,
    }
}

struct Progress<'a> {
    pool: &'a PgPool,
    services: &'a Services,
    opened: &'a Opened,
    arrived: String,
    /// How much of it the feed has.
    n_shown_bytes: usize,
    status: Option<Status>,
    /// What the model has begun to use since.
    tool: Option<String>,
    shown_tool: Option<String>,
    shown_status: Option<Status>,
    writing: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
}

impl<'a> Progress<'a> {
    fn new(pool: &'a PgPool, services: &'a Services, opened: &'a Opened) -> Self {
        Self {
            pool,
            services,
            opened,
            arrived: String::new(),
            n_shown_bytes: 0,
            status: None,
            tool: None,
            shown_tool: None,
            shown_status: None,
            writing: None,
        }
    }

    fn take(&mut self, event: Event) {
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
            || self.tool != self.shown_tool;
        if !is_new || self.writing.is_some() {
            return;
        }
        let event = self.event();
        (self.n_shown_bytes, self.shown_status) = (self.arrived.len(), self.status);
        self.shown_tool.clone_from(&self.tool);
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
        let shown: String = new.chars().take(PROGRESS_MAX_CHARS).collect();
        let begun = &self.opened.begun;
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
                "bytes": self.arrived.len(),
                "cut": shown.len() < new.len(),
                "text": text::storable(shown),
            }),
        }
    }

    /// Returns when the row that is on its way has arrived.
    async fn written(&mut self) {
        match &mut self.writing {
            Some(writing) => writing.await,
            None => std::future::pending().await,
        }
        self.writing = None;
    }
}
