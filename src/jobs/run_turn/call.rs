//! The call itself. No transaction is open here.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{
    assignment::Assignment, budget::Watch, interruption, progress::Progress, rounds::Rounds,
};
use crate::{
    jobs::Services,
    providers::{self, Event, EventSink, Outcome, Request, Usage},
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
    /// What came before it in the turn.
    pub(super) rounds: Rounds,
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
            rounds: Rounds::default(),
        }
    }

    /// What the answer has cost with all that came before it, where the provider has counted.
    pub(super) fn usage(&self) -> Usage {
        let last = self.result.as_ref().map(|outcome| outcome.usage).unwrap_or_default();
        let before = self.rounds.calls.iter().map(|call| call.usage);
        before.fold(last, |sum, usage| {
            let add =
                |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
            Usage {
                input: add(sum.input, usage.input),
                output: add(sum.output, usage.output),
                cache_read: add(sum.cache_read, usage.cache_read),
                cache_creation: add(sum.cache_creation, usage.cache_creation),
            }
        })
    }
}

/// Events that may wait between two looks; more are merged.
const N_EVENTS: usize = 256;

/// With the budget of the turn, if the provider makes more than one call of the model by itself.
pub(super) async fn call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    request: Request,
    progress: &mut Progress<'_>,
    mut budget: Option<&mut Watch<'_>>,
) -> Called {
    let (called_at, began) = (services.clock.now(), Instant::now());
    let (sink, mut events) = EventSink::channel(N_EVENTS);
    let stop = run.cancel().child_token();
    let mut answer = assignment.route.provider.run(request, sink, stop.clone());
    let mut asking = interruption::Asking::new(run.pool(), assignment.task.id);
    let mut is_stopped = false;
    progress.begin_call();
    let result = loop {
        tokio::select! {
            biased;
            result = &mut answer => break result,
            Some(event) = events.recv() => match event {
                Event::Returned => asking.ask(),
                Event::Used(used) => {
                    if let Some(budget) = &mut budget {
                        budget.take(used);
                    }
                }
                event => progress.take(event),
            },
            is_over = step(&mut budget) => {
                if is_over {
                    stop.cancel();
                }
            }
            is_asked = asking.answered() => {
                is_stopped |= is_asked;
                if is_asked {
                    stop.cancel();
                }
            }
            () = progress.step() => {}
        }
    };
    while let Ok(event) = events.try_recv() {
        progress.take(event);
    }
    if let Some(budget) = budget {
        budget.finish().await;
    }
    Called {
        result,
        arrived: progress.arrived.clone(),
        called_at,
        took: began.elapsed(),
        is_doubted: false,
        is_stopped,
        rounds: Rounds::default(),
    }
}

async fn step(budget: &mut Option<&mut Watch<'_>>) -> bool {
    match budget {
        Some(budget) => budget.step().await,
        None => std::future::pending().await,
    }
}
