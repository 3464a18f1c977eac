//! A worker that is stopped for longer than its lease, and wakes up in the belief that nothing happened.

use std::time::Duration;

use dalsegno::jobs::trial::Note;
use rustix::process::Signal;

use super::{
    checker::Expected,
    crew::{Crew, Worker},
    trial::{LEASE, SETTLED, Trial},
};
use crate::app::eventually;

/// Stops a worker that holds the head of a lane, for two leases and until another has done its work.
pub async fn stop_and_continue(leases: u32) {
    let trial = Trial::new().await;
    let mut zombie = Worker::start(&trial, &[]);
    // Deaf to being told to stop: only the fence can keep it from committing.
    let note = Note { millis: 1_000, deaf: true, ..Note::default() };
    let held = trial.note(Some("a"), note).await;
    for _ in 0..5 {
        trial.note(Some("a"), Note { millis: 20, ..Note::default() }).await;
    }
    trial.until("the head runs", 1, "SELECT count(*) FROM trial.starts").await;
    zombie.signal(Signal::STOP);
    let asleep = tokio::time::sleep(LEASE * leases);
    let mut crew = Crew::start(&trial, 1, &[]);
    trial.settle(&mut crew, 0, SETTLED).await;
    asleep.await;
    zombie.signal(Signal::CONT);
    trial.until("its commit is refused", 1, "SELECT count(*) FROM trial.refusals").await;
    assert!(!zombie.is_dead(), "{}", zombie.log());
    let journal = trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    assert_eq!(journal.refusals.len(), 1);
    assert_eq!(journal.starts.iter().filter(|start| start.job_id == held).count(), 2);

    // The zombie is a worker again.
    crew.workers[0].signal(Signal::TERM);
    crew.workers[0].ended(Duration::from_secs(10)).await;
    trial.note(Some("a"), Note::default()).await;
    eventually("the woken worker works", async || {
        (trial.count("SELECT count(*) FROM dalsegno.jobs").await == 0).then_some(())
    })
    .await;
    trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    trial.end().await;
}

#[tokio::test]
async fn a_stopped_worker_cannot_commit_when_it_wakes_up() {
    stop_and_continue(2).await;
}
