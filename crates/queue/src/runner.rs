//! The outermost layer of a run, and the service inside it that calls the handler.
//!
//! [`EndEveryRun`] turns every outcome of a handler into an end: a value, an error, a panic, a missed deadline, an
//! ignored cancellation. It always answers `Ok`, so nothing that a job does becomes an error of the worker. The slot
//! travels with the end, and the [completer](super::completer) frees it.
//!
//! [`CallHandler`] decodes the payload. It happens here and not at the claim, so that an unreadable payload is one dead
//! job and does not stop the worker from claiming.

use std::{
    any::Any,
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use apalis_core::{error::BoxDynError, task::Task};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::sleep;
use tower::{Layer, Service};
use tracing::Instrument;

use super::{
    completer::{Ends, RunEnd},
    crash_points::{CrashPoint, CrashPoints},
    ends::{Death, EndKind},
    fault,
    job::{Decision, End, JobError, LaneFailure, Policy},
    registry::Handlers,
    run::{CommitProof, Run, Stop},
    slots::Claim,
};

/// The layer that ends every run.
#[derive(Clone)]
pub(super) struct EndEveryRun {
    pub(super) handlers: Arc<Handlers>,
    pub(super) ends: Ends,
    pub(super) crash_points: CrashPoints,
    pub(super) cancel_grace: Duration,
}

/// The service of [`EndEveryRun`].
#[derive(Clone)]
pub(super) struct EndEveryRunService<S> {
    around: EndEveryRun,
    inner: S,
}

/// Decodes the payload and calls the handler of the job's kind.
#[derive(Clone)]
pub(super) struct CallHandler {
    pub(super) handlers: Arc<Handlers>,
}

/// A payload that its handler cannot read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the payload is not valid for a `{kind}` job: {source}. Fix it in dalsegno.job_payloads and retry the job, or cancel it"
)]
struct Undecodable {
    kind: String,
    source: serde_json::Error,
}

/// A claim for a kind without a handler. The claim names its kinds, so this is a bug.
#[derive(Debug, thiserror::Error)]
#[error("this worker has no handler for the kind `{0}` that it claimed")]
struct NoHandler(String);

impl<S> Layer<S> for EndEveryRun {
    type Service = EndEveryRunService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        EndEveryRunService { around: self.clone(), inner }
    }
}

impl<S> Service<Task<Claim>> for EndEveryRunService<S>
where
    S: Service<Task<Claim>, Response = End, Error = BoxDynError>,
    S::Future: Send + 'static,
{
    type Response = ();
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<(), Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The services inside are always ready: the slots are the only gate. An error here would belong to no job.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, mut task: Task<Claim>) -> Self::Future {
        let Some(slot) = task.args.slot.take() else {
            // A claim without its slot has already run; nothing is left to end.
            return futures_util::future::ready(Ok(())).boxed();
        };
        let run = slot.run.clone();
        let span = tracing::info_span!(
            "job",
            id = run.job_id(),
            kind = run.kind(),
            attempt = run.attempt()
        );
        let policy =
            self.around.handlers.get(run.kind()).map(|handler| handler.policy).unwrap_or_default();
        let around = self.around.clone();
        let inside = self.inner.call(task);
        let ended = async move {
            around.crash_points.pass(CrashPoint::BeforeRun);
            let ending = tokio::select! {
                biased;
                outcome = AssertUnwindSafe(inside).catch_unwind() => ending_of(outcome, &run, &policy),
                stop = wait_until_overdue(&run, run.deadline(&policy), around.cancel_grace) => ending_of_stop(stop, &run, &policy, None),
            };
            around.crash_points.pass(CrashPoint::BeforeEnd);
            around.ends.send(RunEnd { slot, ending });
            Ok(())
        };
        ended.instrument(span).boxed()
    }
}

impl Service<Task<Claim>> for CallHandler {
    type Response = End;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<End, BoxDynError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, task: Task<Claim>) -> Self::Future {
        let handlers = Arc::clone(&self.handlers);
        async move {
            let Claim { run, payload, .. } = task.args;
            let handler =
                handlers.get(run.kind()).ok_or_else(|| NoHandler(run.kind().to_owned()))?;
            let kind = run.kind().to_owned();
            let handling =
                handler.call(&payload, run).map_err(|source| Undecodable { kind, source })?;
            // Frees the payload early: it can be large, and a run can take minutes.
            drop(payload);
            Ok(handling.await?)
        }
        .boxed()
    }
}

/// Returns when the handler has used up its time: its deadline passed or it was told to stop, and the grace period is over.
async fn wait_until_overdue(run: &Run, deadline: Option<Duration>, grace: Duration) -> Stop {
    let overdue = async {
        match deadline {
            Some(deadline) => sleep(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = run.cancel().cancelled() => {}
        () = overdue => run.stop(Stop::Deadline),
    }
    sleep(grace).await;
    run.stop_reason().unwrap_or(Stop::Drain)
}

/// Returns the end of a handler that returned or panicked.
fn ending_of(
    outcome: Result<Result<End, BoxDynError>, Box<dyn Any + Send>>,
    run: &Run,
    policy: &Policy,
) -> EndKind {
    match outcome {
        // A handler that finished although it was told to stop counts as finished.
        Ok(Ok(End::Done)) => EndKind::Done,
        Ok(Ok(End::Committed(CommitProof { lane_owed, outcomes }))) => {
            EndKind::Committed { lane_owed, outcomes }
        }
        Ok(Ok(End::Snooze { until, reason })) => match run.stop_reason() {
            Some(stop) => ending_of_stop(stop, run, policy, None),
            None => EndKind::Snooze { until, cause: None, reason },
        },
        Ok(Err(error)) => ending_of_error(error, run, policy),
        Err(panic) => {
            let error = format!("the handler panicked: {}", panic_text(&*panic));
            match run.stop_reason() {
                Some(stop) => ending_of_stop(stop, run, policy, Some(error)),
                None => retry(run, policy, None, "panic", error),
            }
        }
    }
}

fn ending_of_error(error: BoxDynError, run: &Run, policy: &Policy) -> EndKind {
    if error.is::<Undecodable>() || error.is::<NoHandler>() {
        return fail(policy, Death::BadPayload, error.to_string());
    }
    // An error of another type comes from a layer between here and the handler.
    let error = match error.downcast::<JobError>() {
        Ok(error) => *error,
        Err(error) => JobError::retry(error),
    };
    match (error.decision, run.stop_reason()) {
        (Decision::Stop, _) => EndKind::LeaseLost,
        (_, Some(stop)) => ending_of_stop(stop, run, policy, Some(error.chain())),
        // The job is not at fault: one outage would use up all attempts of thousands of jobs.
        (Decision::Retry(asked), None) if fault::is_unavailable(&*error.source) => {
            EndKind::DatabaseLost {
                error: error.chain(),
                wait: asked.unwrap_or(policy.backoff.first),
            }
        }
        (Decision::Retry(asked), None) => retry(run, policy, asked, "error", error.chain()),
        (Decision::Snooze(until, cause), None) => {
            EndKind::Snooze { until, cause, reason: error.chain() }
        }
        (Decision::Fail, None) => fail(policy, Death::Failed, error.chain()),
    }
}

/// Returns the end of a handler that was told to stop and did.
fn ending_of_stop(stop: Stop, run: &Run, policy: &Policy, error: Option<String>) -> EndKind {
    match stop {
        Stop::Cancelled => EndKind::Cancelled { error: None },
        Stop::Drain => EndKind::GivenBack,
        Stop::LeaseLost => EndKind::LeaseLost,
        Stop::Deadline => {
            let secs = run.deadline(policy).unwrap_or_default().as_secs_f64();
            let late = format!("the attempt exceeded its deadline of {secs} s");
            let error = error.map(|error| format!("{late}: {error}")).unwrap_or(late);
            retry(run, policy, None, "deadline", error)
        }
    }
}

fn retry(
    run: &Run,
    policy: &Policy,
    asked: Option<Duration>,
    cause: &'static str,
    error: String,
) -> EndKind {
    if run.attempt() >= run.max_attempts() {
        return fail(policy, Death::Exhausted, error);
    }
    EndKind::Retry {
        cause,
        error,
        backoff: policy.backoff,
        asked_secs: asked.map(|wait| wait.as_secs_f64()),
    }
}

fn fail(policy: &Policy, death: Death, error: String) -> EndKind {
    EndKind::Fail { death, hold_lane: policy.lane_failure == LaneFailure::Hold, error }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
