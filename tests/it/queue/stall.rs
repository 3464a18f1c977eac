//! A worker that is suspended for longer than its lease, and continues.

use std::time::Duration;

use dalsegno::jobs::trial::Note;
use rustix::process::Signal;

use super::{
    checker::Expected,
    supervisor::{Worker, WorkerSupervisor},
    trial::{SHORT_LEASES, Trial, open},
};
use crate::{app::eventually, leases};

/// Suspends a worker that runs the head of a lane, until another has done its work. Its lease expires by itself during
/// `asleep`, or the test ends it, so that the worker cannot notice before it continues.
pub async fn stop_and_continue(asleep: Option<Duration>) {
    let trial = Trial::new().await;
    let settings = if asleep.is_some() { &SHORT_LEASES[..] } else { &[] };
    let mut zombie = Worker::start(&trial, settings);
    // Ignores the request to stop, so that only the fence keeps it from committing.
    let gate = trial.gate("another has done the work");
    let note = Note { gate: Some(gate.clone()), deaf: true, ..Note::default() };
    let held = trial.note(Some("a"), note).await;
    for _ in 0..5 {
        trial.note(Some("a"), Note { millis: 20, ..Note::default() }).await;
    }
    trial.until("the head runs", 1, "SELECT count(*) FROM trial.starts").await;
    zombie.signal(Signal::STOP);
    open(&gate);
    let sleep = tokio::time::sleep(asleep.unwrap_or_default());
    if asleep.is_none() {
        leases::end(&trial.pool, zombie.pid()).await.unwrap();
    }
    let mut supervisor = WorkerSupervisor::start(&trial, 1, settings);
    trial.settle(&mut supervisor, 0).await;
    sleep.await;
    zombie.signal(Signal::CONT);
    trial.until("its commit is refused", 1, "SELECT count(*) FROM trial.refusals").await;
    assert!(!zombie.is_dead(), "{}", zombie.log());
    let journal = trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    assert_eq!(journal.refusals.len(), 1);
    assert_eq!(journal.starts.iter().filter(|start| start.job_id == held).count(), 2);

    // The suspended worker works again.
    supervisor.workers[0].signal(Signal::TERM);
    supervisor.workers[0].ended().await;
    trial.note(Some("a"), Note::default()).await;
    eventually("the resumed worker runs jobs", async || {
        (trial.count("SELECT count(*) FROM dalsegno.jobs").await == 0).then_some(())
    })
    .await;
    trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    trial.end().await;
}

#[tokio::test]
async fn a_stopped_worker_cannot_commit_when_it_wakes_up() {
    stop_and_continue(None).await;
}
