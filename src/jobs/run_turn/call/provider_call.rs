//! One call of the provider. No transaction is open.

use tokio::time::Instant;

use crate::{
    domain::turns::HistoryCheck,
    jobs::{
        Services,
        run_turn::{
            call::{
                budget::Watch, interruption, progress::Progress, report::CallReport,
                rounds::record::Rounds,
            },
            load::assignment::Assignment,
        },
    },
    providers::{Event, EventSink, Request},
    queue::Run,
};

/// Capacity of the event channel; further events are merged.
const N_EVENTS: usize = 256;

/// Makes the call. `budget` is set if the provider makes several calls of the model itself.
pub async fn call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    request: Request,
    progress: &mut Progress<'_>,
    mut budget: Option<&mut Watch<'_>>,
) -> CallReport {
    let (called_at, began) = (services.clock.now(), Instant::now());
    let (sink, mut events) = EventSink::channel(N_EVENTS);
    let stop = run.cancel().child_token();
    let mut answer = assignment.route.provider.run(request, sink, stop.clone());
    let mut asking = interruption::StopCheck::new(run.pool(), assignment.task.id);
    let (mut is_stopped, mut sent, mut told_limits) = (false, None, None);
    progress.begin_call();
    let result = loop {
        tokio::select! {
            biased;
            result = &mut answer => break result,
            Some(event) = events.recv() => match event {
                Event::Sent(request) => sent = Some(request),
                Event::Limits(told) => told_limits = Some(told),
                Event::Returned => asking.start_check(),
                Event::Used(used) => {
                    if let Some(budget) = &mut budget {
                        budget.record_usage(used);
                    }
                }
                event => progress.apply_event(event),
            },
            is_over = step(&mut budget) => {
                if is_over {
                    stop.cancel();
                }
            }
            is_asked = asking.wait_for_answer() => {
                is_stopped |= is_asked;
                if is_asked {
                    stop.cancel();
                }
            }
            () = progress.write_when_due() => {}
        }
    };
    while let Ok(event) = events.try_recv() {
        match event {
            Event::Sent(request) => sent = Some(request),
            Event::Limits(told) => told_limits = Some(told),
            event => progress.apply_event(event),
        }
    }
    if let Some(budget) = budget {
        budget.finish().await;
    }
    CallReport {
        result,
        arrived: progress.arrived.clone(),
        sent,
        called_at,
        took: began.elapsed(),
        history_check: HistoryCheck::NotProvable,
        is_stopped,
        batch_call: None,
        told_limits,
        rounds: Rounds::default(),
    }
}

async fn step(budget: &mut Option<&mut Watch<'_>>) -> bool {
    match budget {
        Some(budget) => budget.wait_for_check().await,
        None => std::future::pending().await,
    }
}
