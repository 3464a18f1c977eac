//! Clocks of workers and database that differ by an hour: leases use the database's clock, waits the monotonic one.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Duration, Utc};
use dalsegno::jobs::trial::Note;
use rustix::process::Signal;

use super::{
    checker::Expected,
    supervisor::{Worker, WorkerSupervisor},
    trial::{Trial, open},
};
use crate::service::command;

/// Builds a library that shifts the wall clock of the process that loads it, with the linker that Rust uses.
async fn skewing_library(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes/skewed_clock.c");
    let library = folder.join("skewed_clock.so");
    let mut compiler = command("cc", folder);
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    let compiled = compiler.output().await.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}

/// Returns how far the worker's clock is ahead, by the first line of its log.
fn ahead(worker: &Worker, now: DateTime<Utc>) -> Duration {
    let log = worker.log();
    let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    line["timestamp"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap() - now
}

#[tokio::test]
async fn clocks_an_hour_apart_end_no_lease_and_delay_no_job() {
    let trial = Trial::new().await;
    let library = skewing_library(trial.folder()).await;
    let library = library.to_str().unwrap();
    let start = |secs| Worker::start(&trial, &[("LD_PRELOAD", library), ("CLOCK_SKEW_SECS", secs)]);
    let mut fast = start("3600");
    let mut slow = start("-3600");
    fast.ready().await;
    slow.ready().await;
    let now: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&trial.pool).await.unwrap();
    assert!((ahead(&fast, now) - Duration::hours(1)).abs() < Duration::minutes(2), "not skewed");
    assert!((ahead(&slow, now) + Duration::hours(1)).abs() < Duration::minutes(2), "not skewed");

    // Through some heartbeats, so that trusting a shifted clock would lose the run; and with waits that end by the
    // database's clock.
    for lane in 0..8 {
        let lane = format!("lane {lane}");
        trial.note(Some(&lane), Note { millis: 2_500, ..Note::default() }).await;
        let note = Note { millis: 10, failures: 1, snoozes: 1, ..Note::default() };
        trial.note(Some(&lane), note).await;
    }
    let mut supervisor = WorkerSupervisor::start(&trial, 0, &[]);
    trial.settle(&mut supervisor, 0).await;
    let journal = trial.check(&Expected::default()).await;
    let at_work = |worker: &Worker| {
        journal.effects.iter().any(|effect| effect.worker == i64::from(worker.pid()))
    };
    assert!(at_work(&fast) || at_work(&slow));

    // A dead worker is still detected.
    let gate = trial.gate("the victim is dead");
    trial.note(None, Note { gate: Some(gate.clone()), ..Note::default() }).await;
    trial.until("the job runs", 17, "SELECT count(DISTINCT job_id) FROM trial.starts").await;
    let by_fast =
        trial.count("SELECT worker FROM trial.starts ORDER BY started_at DESC LIMIT 1").await
            == i64::from(fast.pid());
    let victim = if by_fast { &mut fast } else { &mut slow };
    victim.signal(Signal::KILL);
    victim.ended().await;
    open(&gate);
    trial.settle(&mut supervisor, 0).await;
    trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    trial.end().await;
}
