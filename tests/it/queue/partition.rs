//! A network partition between worker and Postgres that closes no connection.

use std::time::Duration;

use chrono::{DateTime, Utc};
use dalsegno::jobs::trial::{Note, Sleep};
use rustix::process::Signal;
use tokio::time::Instant;

use super::{
    checker::Expected,
    proxy::Proxy,
    supervisor::{Worker, WorkerSupervisor},
    trial::{Trial, open},
};
use crate::{
    app::{SOON, eventually},
    leases,
};

/// Returns the time at which a handler was told to stop, by its worker's log.
async fn stop_time(worker: &Worker) -> DateTime<Utc> {
    eventually("the handler is told to stop", async || {
        let log = worker.log();
        let line = log.lines().find(|line| line.contains("told to stop"))?;
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line.to_string().contains("LeaseLost"), "{line}");
        Some(line["timestamp"].as_str().unwrap().parse().unwrap())
    })
    .await
}

/// Settings that stop the runs 6 s after the last answered renewal, with a minute to spare.
const FENCED: [(&str, &str); 3] = [
    ("DALSEGNO_QUEUE__LEASE_SECS", "66"),
    ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "60"),
    ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "60"),
];

/// Cuts a worker off while it runs the head of a lane, until another worker has done its work, and for at least
/// `silent`.
pub async fn partition_worker(silent: Duration) {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    let mut cut = Worker::start(&trial, &[&FENCED[..], &[("DATABASE_URL", url.as_str())]].concat());
    // It still works when the fence comes.
    let gate = trial.gate("the first worker was told to stop");
    trial.note(Some("a"), Note { gate: Some(gate.clone()), ..Note::default() }).await;
    for _ in 0..5 {
        trial.note(Some("a"), Note { millis: 20, ..Note::default() }).await;
    }
    // The database knows the run a moment before its handler begins.
    eventually("the head runs", async || cut.log().contains("started the trial job").then_some(()))
        .await;
    proxy.stall();
    let silent = tokio::time::sleep(silent);

    let stopped_at = stop_time(&cut).await;
    let lease_until: DateTime<Utc> =
        sqlx::query_scalar("SELECT min(lease_until) FROM dalsegno.workers")
            .fetch_one(&trial.pool)
            .await
            .unwrap();
    assert!(stopped_at < lease_until, "stopped at {stopped_at}, its lease ended at {lease_until}");

    open(&gate);
    leases::end(&trial.pool, cut.pid()).await.unwrap();
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[]);
    trial.settle(&mut supervisor, 0).await;
    silent.await;
    assert!(!cut.is_dead(), "{}", cut.log());
    proxy.resume_traffic();
    let healed = Instant::now();
    eventually("the worker registers anew", async || {
        (cut.log().matches("worker registered").count() == 2).then_some(())
    })
    .await;
    let interrupted = "SELECT count(*) FROM dalsegno.runs WHERE outcome = 'interrupted'";
    trial.until("the run is recorded as given back", 1, interrupted).await;
    supervisor.workers[0].signal(Signal::TERM);
    supervisor.workers[0].ended().await;
    trial.note(Some("a"), Note::default()).await;
    eventually("the worker runs jobs again", async || {
        (trial.count("SELECT count(*) FROM dalsegno.jobs").await == 0).then_some(())
    })
    .await;
    println!("worked again {:?} after the network did", healed.elapsed());
    trial.check(&Expected::default()).await;
    drop(cut);
    proxy.end().await;
    trial.end().await;
}

#[tokio::test]
async fn a_partitioned_worker_stops_before_its_lease_ends_and_reconnects() {
    partition_worker(Duration::ZERO).await;
}

/// Makes the listening connection of a worker with these settings half open.
async fn freeze_listener<'a>(
    trial: &'a Trial,
    settings: &[(&str, &str)],
) -> (Proxy, WorkerSupervisor<'a>) {
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    let supervisor =
        WorkerSupervisor::start(trial, 1, &[&[("DATABASE_URL", url.as_str())], settings].concat());
    let waiting = "SELECT count(*) FROM dalsegno.workers WHERE waiting";
    trial.until("the worker waits", 1, waiting).await;
    assert_eq!(proxy.n_connections("dalsegno listener"), 1);
    assert_eq!(proxy.freeze("dalsegno listener"), 1);
    (proxy, supervisor)
}

/// Checks that polling continues beside a listener that does not notice within the test.
async fn poll_beside_a_frozen_listener() {
    let trial = Trial::new().await;
    let settings = [("DALSEGNO_QUEUE__LISTEN_PING_SECS", "3600")];
    let (proxy, mut supervisor) = freeze_listener(&trial, &settings).await;
    let picked_up = async {
        // A claimer that does not poll looks once a minute.
        for _ in 0..4 {
            trial.note(None, Note::default()).await;
            trial.settle(&mut supervisor, 0).await;
        }
    };
    tokio::time::timeout(SOON, picked_up).await.expect("it polls");
    assert_eq!(proxy.n_connections("dalsegno listener"), 1);
    end(&trial, supervisor, proxy).await;
}

/// Checks that the listener of a worker without polling notices that its connection is frozen.
async fn detect_frozen_listener() {
    let trial = Trial::new().await;
    let settings = [("DALSEGNO_QUEUE__POLL_IDLE_MS", "3600000")];
    let (proxy, mut supervisor) = freeze_listener(&trial, &settings).await;
    trial.note(None, Note::default()).await;
    trial.settle(&mut supervisor, 0).await;
    eventually("it listens again", async || {
        (proxy.n_connections("dalsegno listener") > 1).then_some(())
    })
    .await;
    end(&trial, supervisor, proxy).await;
}

async fn end(trial: &Trial, supervisor: WorkerSupervisor<'_>, proxy: Proxy) {
    trial.check(&Expected::default()).await;
    drop(supervisor);
    proxy.end().await;
    trial.end().await;
}

/// Freezes a connection of one part, while the others work.
async fn freeze_heartbeat_and_claimer() -> Trial {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[("DATABASE_URL", url.as_str())]);
    let sleeper = trial.job(None, &Sleep {}).await;
    trial.until("the sleeper runs", 1, "SELECT count(*) FROM trial.starts").await;
    for part in ["dalsegno heartbeat", "dalsegno claimer"] {
        assert_eq!(proxy.freeze(part), 1, "{part}");
    }
    let frozen = Instant::now();
    trial.note(Some("a"), Note::default()).await;
    trial.settle(&mut supervisor, 1).await;
    println!("picked up {:?} after the claimer went silent", frozen.elapsed());
    eventually("the heartbeat has detected the loss, too", async || {
        (proxy.n_connections("dalsegno heartbeat") > 1).then_some(())
    })
    .await;
    let expected = Expected { live: [sleeper].into(), ..Expected::default() };
    let journal = trial.check(&expected).await;
    assert_eq!(journal.starts.len(), 2, "the sleeping job was interrupted");
    drop(supervisor);
    proxy.end().await;
    trial.end().await;
    // Dropped by the caller after all have ended, because its drop blocks.
    trial
}

#[tokio::test]
async fn half_open_connections_are_detected_and_other_workers_take_the_jobs() {
    tokio::join!(
        poll_beside_a_frozen_listener(),
        detect_frozen_listener(),
        freeze_heartbeat_and_claimer()
    );
}
