//! The long forms. `cargo test --features chaos -- chaos`; DALSEGNO_TEST_SEED repeats a run.

use std::time::Duration;

use dalsegno::jobs::trial::Note;
use rustix::process::Signal;
use tokio::time::Instant;

use super::{
    checker::Expected,
    connections, kills, outage, partition, stall,
    supervisor::Worker,
    trial::{LEASE, SHORT_LEASES, Trial},
};
use crate::embedded::support::send;

#[tokio::test]
async fn random_kills_for_a_minute() {
    kills::kill_at_random(Duration::from_secs(60)).await;
}

/// A worker with the default lease is killed, and another runs its job again.
#[tokio::test]
async fn a_crash_is_recovered_within_40_seconds() {
    let default_leases = [
        ("DALSEGNO_QUEUE__LEASE_SECS", "30"),
        ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "5"),
        ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "10"),
        ("DALSEGNO_QUEUE__POLL_BUSY_MS", "1000"),
        ("DALSEGNO_QUEUE__POLL_IDLE_MS", "5000"),
    ];
    let trial = Trial::new().await;
    let first = Worker::start(&trial, &default_leases);
    trial.note(Some("a"), Note { millis: 20_000, ..Note::default() }).await;
    trial.until("the job runs", 1, "SELECT count(*) FROM trial.starts").await;
    // A worker that declares others lost must have renewed for a whole lease first.
    let second = Worker::start(&trial, &default_leases);
    second.ready().await;
    send(first.pid(), Signal::KILL);
    let killed = Instant::now();
    let starts = async || trial.count("SELECT count(*) FROM trial.starts").await >= 2;
    trial.until_within(Duration::from_secs(40), "the job runs again", starts).await;
    println!("crash to re-run with a lease of 30 s: {:?}", killed.elapsed());
    crate::app::eventually("the job has ended", async || {
        (trial.count("SELECT count(*) FROM dalsegno.jobs").await == 0).then_some(())
    })
    .await;
    trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    trial.end().await;
}

/// Longer than any lease: all runs are stopped before it ends, and no worker that was cut off itself declares others
/// lost.
#[tokio::test]
async fn postgres_is_away_for_45_seconds() {
    let settings =
        [("DALSEGNO_QUEUE__LEASE_SECS", "30"), ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "10")];
    outage::kill_postgres(Duration::from_secs(45), &settings, 0).await;
}

#[tokio::test]
async fn postgres_is_away_for_many_short_leases() {
    outage::kill_postgres(Duration::from_secs(30), &SHORT_LEASES, 0).await;
}

#[tokio::test]
async fn an_idle_service_without_its_database_ends_within_five_seconds() {
    let (silent, gone) =
        tokio::join!(outage::stop_without_a_database(true), outage::stop_without_a_database(false));
    assert!(silent.max(gone) < Duration::from_secs(5), "{silent:?}, {gone:?}");
}

#[tokio::test]
async fn a_worker_sleeps_for_ten_leases() {
    stall::stop_and_continue(Some(10 * LEASE)).await;
}

#[tokio::test]
async fn a_worker_is_partitioned_for_ten_leases() {
    partition::partition_worker(10 * LEASE).await;
}

#[tokio::test]
async fn connections_are_terminated_for_a_long_time() {
    connections::terminate_backends(40).await;
}
