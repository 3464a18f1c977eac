//! The network between a worker and Postgres goes silent without closing anything.

use std::time::Duration;

use chrono::{DateTime, Utc};
use dalsegno::jobs::trial::{Note, Sleep};
use rustix::process::Signal;
use tokio::time::Instant;

use super::{
    checker::Expected,
    crew::{Crew, Worker},
    proxy::Proxy,
    trial::{LEASE, SETTLED, Trial},
};
use crate::app::eventually;

/// When the handler of a job heard that it has to stop, by the log of its worker.
async fn told_to_stop(worker: &Worker) -> DateTime<Utc> {
    eventually("the handler is told to stop", async || {
        let log = worker.log();
        let line = log.lines().find(|line| line.contains("told to stop"))?;
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line.to_string().contains("LeaseLost"), "{line}");
        Some(line["timestamp"].as_str().unwrap().parse().unwrap())
    })
    .await
}

/// A worker is cut off for longer than its lease, in the middle of the head of a lane.
pub async fn cut_off(leases: u32) {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let mut cut = Worker::start(&trial, &[("DATABASE_URL", &proxy.url(&options))]);
    // It still works when the fence comes, four seconds after the last renewal.
    trial.note(Some("a"), Note { millis: 7_000, ..Note::default() }).await;
    for _ in 0..5 {
        trial.note(Some("a"), Note { millis: 20, ..Note::default() }).await;
    }
    // The database knows of the run a moment before its handler knows that it does.
    eventually("the head runs", async || cut.log().contains("began to work").then_some(())).await;
    proxy.stall();
    let silent = tokio::time::sleep(LEASE * leases);
    let mut crew = Crew::start(&trial, 1, &[]);

    let stopped_at = told_to_stop(&cut).await;
    let lease_until: DateTime<Utc> =
        sqlx::query_scalar("SELECT min(lease_until) FROM dalsegno.workers")
            .fetch_one(&trial.pool)
            .await
            .unwrap();
    assert!(stopped_at < lease_until, "stopped at {stopped_at}, its lease ended at {lease_until}");

    trial.settle(&mut crew, 0, SETTLED).await;
    silent.await;
    assert!(!cut.is_dead(), "{}", cut.log());
    proxy.heal();
    let healed = Instant::now();
    eventually("the worker registers anew", async || {
        (cut.log().matches("worker registered").count() == 2).then_some(())
    })
    .await;
    let interrupted = "SELECT count(*) FROM dalsegno.runs WHERE outcome = 'interrupted'";
    trial.until("its run did not crash, and it says so", 1, interrupted).await;
    crew.workers[0].signal(Signal::TERM);
    crew.workers[0].ended(Duration::from_secs(10)).await;
    trial.note(Some("a"), Note::default()).await;
    eventually("the worker works again", async || {
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
async fn a_worker_that_is_cut_off_stops_before_its_lease_ends_and_comes_back() {
    cut_off(2).await;
}

/// Only the listening connection is half open: polling goes on, and the listener finds out.
async fn freeze_listener() -> Trial {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    let mut crew = Crew::start(&trial, 1, &[("DATABASE_URL", &url)]);
    let waiting = "SELECT count(*) FROM dalsegno.workers WHERE waiting";
    trial.until("the worker waits", 1, waiting).await;
    eventually("the worker listens", async || {
        (proxy.n_made("dalsegno listener") == 1).then_some(())
    })
    .await;
    assert_eq!(proxy.freeze("dalsegno listener"), 1);
    let frozen = Instant::now();
    let mut slowest = Duration::ZERO;
    while proxy.n_made("dalsegno listener") < 2 {
        let enqueued = Instant::now();
        trial.note(None, Note::default()).await;
        trial.settle(&mut crew, 0, Duration::from_secs(5)).await;
        slowest = slowest.max(enqueued.elapsed());
        assert!(frozen.elapsed() < Duration::from_secs(15), "not found out:\n{}", crew.logs());
    }
    println!("found out after {:?}, slowest pick-up {slowest:?}", frozen.elapsed());
    // The idle poll of a trial, and what a busy machine adds.
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    trial.check(&Expected::default()).await;
    drop(crew);
    proxy.end().await;
    trial.end().await;
    // Dropped by the caller when all are ready: its drop blocks.
    trial
}

/// A connection of one part never answers again, while others do.
async fn freeze_heartbeat_and_claimer() -> Trial {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    // The heartbeat gives up on an answer after four seconds, so the lease is longer than that.
    let settings = [("DATABASE_URL", url.as_str()), ("DALSEGNO_QUEUE__LEASE_SECS", "12")];
    let mut crew = Crew::start(&trial, 1, &settings);
    let sleeper = trial.job(None, &Sleep {}).await;
    trial.until("the sleeper runs", 1, "SELECT count(*) FROM trial.starts").await;
    for part in ["dalsegno heartbeat", "dalsegno claimer"] {
        assert_eq!(proxy.freeze(part), 1, "{part}");
    }
    let frozen = Instant::now();
    trial.note(Some("a"), Note::default()).await;
    trial.settle(&mut crew, 1, Duration::from_secs(20)).await;
    println!("picked up {:?} after the claimer went silent", frozen.elapsed());
    assert!(proxy.n_made("dalsegno heartbeat") > 1);
    let expected = Expected { live: [sleeper].into(), ..Expected::default() };
    let journal = trial.check(&expected).await;
    assert_eq!(journal.starts.len(), 2, "the sleeper was disturbed");
    drop(crew);
    proxy.end().await;
    trial.end().await;
    // Dropped by the caller when all are ready: its drop blocks.
    trial
}

#[tokio::test]
async fn half_open_connections_are_found_out_and_meanwhile_work_is_picked_up() {
    tokio::join!(freeze_listener(), freeze_heartbeat_and_claimer());
}
