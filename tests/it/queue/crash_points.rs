//! The worker dies at each named place of claim, run and end.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::jobs::trial::{Note, NoteEnd};
use futures_util::future::join_all;
use rustix::process::Signal;

use super::{
    checker::Expected,
    crew::{Crew, SLOTS, Worker},
    trial::{RECOVERY, Trial},
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

/// A lane of three jobs, of which one fails first, and two jobs without a lane, of which one snoozes first.
async fn enqueue(trial: &Trial, end: NoteEnd) {
    let note = Note { millis: 200, end, ..Note::default() };
    trial.note(Some("a"), note.clone()).await;
    trial.note(Some("a"), Note { failures: 1, ..note.clone() }).await;
    trial.note(Some("a"), note.clone()).await;
    trial.note(None, Note { snoozes: 1, ..note.clone() }).await;
    trial.note(None, note).await;
}

async fn die_at(point: &str, end: NoteEnd) {
    let trial = Trial::new().await;
    let mut expected = Expected { lost_runs: SLOTS, ..Expected::default() };
    if point == "after_rescue" {
        // There has to be somebody to rescue.
        let note = Note { millis: 60_000, end, ..Note::default() };
        trial.note(None, note).await;
        let victim = Worker::start(&trial, &[]);
        trial.until("the victim works", 1, "SELECT count(*) FROM trial.starts").await;
        victim.signal(Signal::KILL);
        sqlx::query(
            "UPDATE dalsegno.job_payloads SET payload = jsonb_set(payload, '{millis}', '1')",
        )
        .execute(&trial.pool)
        .await
        .unwrap();
        expected.lost_runs += 1;
    }
    let mut armed = Worker::start(&trial, &[("DALSEGNO_QUEUE__CRASH_AT", point)]);
    if point != "after_rescue" {
        enqueue(&trial, end).await;
    }
    let died = armed.ended(RECOVERY).await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "at {point}:\n{}", armed.log());
    let mut crew = Crew::start(&trial, 1, &[]);
    trial.settle(&mut crew, 0, RECOVERY).await;
    assert_eq!(crew.n_replaced, 0, "{}", crew.logs());
    println!("{point}, {end:?}: {} runs lost", trial.check(&expected).await.n_runs("lost"));
}

#[tokio::test]
async fn a_worker_that_dies_at_any_point_loses_and_doubles_nothing() {
    join_all(POINTS.map(|point| die_at(point, NoteEnd::Own))).await;
}

#[tokio::test]
async fn a_worker_that_dies_while_it_writes_ends_of_others_loses_and_doubles_nothing() {
    let points = ["before_end", "after_end_write_before_commit", "after_commit"];
    join_all(points.map(|point| die_at(point, NoteEnd::Batched))).await;
}
