//! The long forms. `cargo test --features chaos -- chaos`; DALSEGNO_TEST_SEED repeats a run.

use std::time::Duration;

use super::{connections, kills, outage, partition, stall};

#[tokio::test]
async fn random_kills_for_a_minute() {
    kills::kill_at_random(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_crash_is_made_good_within_40_seconds() {
    kills::rerun_with_default_leases().await;
}

/// Longer than any lease: all runs are stopped before it ends, and nobody is declared lost by a worker that was away
/// itself.
#[tokio::test]
async fn postgres_is_away_for_45_seconds() {
    let settings =
        [("DALSEGNO_QUEUE__LEASE_SECS", "30"), ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "10")];
    outage::kill_postgres(Duration::from_secs(45), &settings, 0).await;
}

#[tokio::test]
async fn postgres_is_away_for_many_short_leases() {
    outage::kill_postgres(Duration::from_secs(30), &[], 0).await;
}

#[tokio::test]
async fn a_worker_sleeps_for_ten_leases() {
    stall::stop_and_continue(10).await;
}

#[tokio::test]
async fn a_worker_is_cut_off_for_ten_leases() {
    partition::cut_off(10).await;
}

#[tokio::test]
async fn connections_are_ended_for_a_long_time() {
    connections::terminate_backends(40).await;
}
