//! The rate at which jobs are enqueued.

use std::time::{Duration, Instant};

use dalsegno::queue::{Options, enqueue, enqueue_many};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    common::size,
    fixture::{Fixture, Noop},
};

fn measured_for() -> Duration {
    size::of(Duration::from_secs(5), Duration::from_millis(100))
}

/// Measures one plain insert per transaction, as a reference for the next scenario.
pub async fn bare(ground: Fixture) -> anyhow::Result<Value> {
    Ok(
        json!({ "scenario": "bare_insert", "connections": 1, "inserts_per_s": bare_rate(&ground).await?.round() }),
    )
}

/// Enqueues one job per transaction on one connection.
pub async fn one_by_one(ground: Fixture) -> anyhow::Result<Value> {
    let bare = bare_rate(&ground).await?;
    let mut conn = ground.pool.acquire().await?;
    let began = Instant::now();
    let mut n_jobs = 0u64;
    while began.elapsed() < measured_for() {
        enqueue(&mut *conn, &Noop { n: n_jobs }, &Options::default()).await?;
        n_jobs += 1;
    }
    let rate = n_jobs as f64 / began.elapsed().as_secs_f64();
    Ok(json!({
        "scenario": "enqueue_one_by_one", "connections": 1, "jobs_per_s": rate.round(),
        "bare_inserts_per_s": bare.round(), "ratio": rate / bare,
    }))
}

/// Enqueues on sixteen connections, one job per transaction, each into one of a hundred thousand lanes, without and with a worker.
pub async fn into_lanes(ground: Fixture) -> anyhow::Result<Value> {
    let quiet = lanes_rate(&ground).await?;
    ground.empty().await?;
    let (worker, _arrivals) = ground.start_worker(64);
    let busy = lanes_rate(&ground).await?;
    worker.stop().await?;
    Ok(json!({
        "scenario": "enqueue_into_lanes", "connections": 16, "lanes": 100_000,
        "jobs_per_s": quiet.round(), "jobs_per_s_with_worker": busy.round(),
    }))
}

/// Enqueues a hundred thousand jobs in bulk.
pub async fn bulk(ground: Fixture) -> anyhow::Result<Value> {
    let n_chunks = size::of(20, 1);
    let began = Instant::now();
    for chunk in 0..n_chunks {
        let jobs = (0..5_000).map(|n| (Noop { n: chunk * 5_000 + n }, Options::default()));
        enqueue_many(&ground.pool, jobs).await?;
    }
    let plain = began.elapsed();
    let began = Instant::now();
    for chunk in 0..n_chunks {
        let jobs = (0..5_000u64).map(|n| {
            let lane = Some(format!("lane-{}", chunk * 5_000 + n));
            (Noop { n }, Options { lane, ..Options::default() })
        });
        enqueue_many(&ground.pool, jobs).await?;
    }
    let laned = began.elapsed();
    Ok(json!({
        "scenario": "enqueue_bulk", "jobs": n_chunks * 5_000, "secs": plain.as_secs_f64(), "secs_with_a_lane_each": laned.as_secs_f64(),
    }))
}

async fn bare_rate(ground: &Fixture) -> anyhow::Result<f64> {
    let mut conn = ground.pool.acquire().await?;
    let began = Instant::now();
    let mut n_rows = 0u64;
    while began.elapsed() < measured_for() {
        sqlx::query("INSERT INTO bench_bare (kind, payload) VALUES ('noop', '{\"n\": 1}')")
            .execute(&mut *conn)
            .await?;
        n_rows += 1;
    }
    Ok(n_rows as f64 / began.elapsed().as_secs_f64())
}

async fn lanes_rate(ground: &Fixture) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..16u64 {
        let pool = ground.pool.clone();
        clients.spawn(async move {
            let mut conn = pool.acquire().await?;
            let mut n_jobs = 0u64;
            // A fixed stride visits all lanes in an order that makes caches useless.
            let mut lane = client * 6_151;
            while began.elapsed() < measured_for() {
                lane = (lane + 7_919) % 100_000;
                let options = Options { lane: Some(format!("lane-{lane}")), ..Options::default() };
                enqueue(&mut *conn, &Noop { n: n_jobs }, &options).await?;
                n_jobs += 1;
            }
            anyhow::Ok(n_jobs)
        });
    }
    let mut n_jobs = 0;
    while let Some(client) = clients.join_next().await {
        n_jobs += client??;
    }
    Ok(n_jobs as f64 / began.elapsed().as_secs_f64())
}
