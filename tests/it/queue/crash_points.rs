//! Workers that die at each named step of claim, run and end.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::jobs::trial::{Note, NoteEnd};
use futures_util::future::join_all;
use rustix::process::Signal;
use tokio::time::Instant;

use super::{
    checker::Expected,
    supervisor::{SLOTS, Worker, WorkerSupervisor},
    trial::{Trial, open},
};

const POINTS: [&str; 7] = [
    "after_claim",
    "before_run",
    "before_end",
    "after_end_write_before_commit",
    "after_commit",
    "after_renew",
    "after_rescue",
];

/// Enqueues a lane of three jobs, of which one fails first, and two jobs without a lane, of which one snoozes first.
async fn enqueue(trial: &Trial, end: NoteEnd) {
    let note = Note { millis: 1_200, end, ..Note::default() };
    trial.note(Some("a"), note.clone()).await;
    trial.note(Some("a"), Note { failures: 1, ..note.clone() }).await;
    trial.note(Some("a"), note.clone()).await;
    trial.note(None, Note { snoozes: 1, ..note.clone() }).await;
    trial.note(None, note).await;
}

async fn crash_at(point: &str, end: NoteEnd) -> Trial {
    let trial = Trial::new().await;
    let mut expected = Expected { lost_runs: SLOTS, ..Expected::default() };
    if point == "after_rescue" {
        // A lost worker to rescue from.
        let gate = trial.gate("the victim is dead");
        trial.note(None, Note { gate: Some(gate.clone()), end, ..Note::default() }).await;
        let mut victim = Worker::start(&trial, &[]);
        trial.until("the victim runs jobs", 1, "SELECT count(*) FROM trial.starts").await;
        victim.signal(Signal::KILL);
        victim.ended().await;
        open(&gate);
        expected.lost_runs += 1;
    }
    if point != "after_rescue" {
        enqueue(&trial, end).await;
    }
    let began = Instant::now();
    let mut armed = Worker::start(&trial, &[("DALSEGNO_QUEUE__CRASH_AT", point)]);
    let died = armed.ended().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "at {point}:\n{}", armed.log());
    let died_after = began.elapsed();
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[]);
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 0, "{}", supervisor.logs());
    let n_lost = trial.check(&expected).await.n_runs("lost");
    let settled_after = began.elapsed();
    println!(
        "{point}, {end:?}: died after {died_after:?}, settled after {settled_after:?}, {n_lost} runs lost"
    );
    drop(supervisor);
    trial.end().await;
    // Dropped by the caller after all have ended, because its drop blocks.
    trial
}

#[tokio::test]
async fn a_worker_crash_at_any_point_loses_and_duplicates_nothing() {
    let own = POINTS.map(|point| (point, NoteEnd::Own));
    // Ends that the worker writes for its handlers pass the same points elsewhere.
    let ends = ["before_end", "after_end_write_before_commit", "after_commit"];
    let batched = ends.map(|point| (point, NoteEnd::Batched));
    join_all(own.into_iter().chain(batched).map(|(point, end)| crash_at(point, end))).await;
}
