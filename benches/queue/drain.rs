//! The rate at which a full queue is emptied.

use std::time::{Duration, Instant};

use dalsegno::queue::Options;
use serde_json::{Value, json};

use crate::{
    common::{cpu, size, wal_bytes},
    fixture::{Fixture, Noop, OwnCommit},
};

/// Drains jobs without a lane, with no-op handlers and 500 slots.
pub async fn plain(ground: Fixture) -> anyhow::Result<Value> {
    let n_jobs = size::of(60_000, 200);
    ground.fill((0..n_jobs).map(|n| (Noop { n }, Options::default()))).await?;
    ground.analyze().await?;
    let (wal, versions) = (wal_bytes(&ground.pool).await?, ground.row_versions().await?);
    let rate = drain(&ground, 500, n_jobs as usize).await?;
    let wal = wal_bytes(&ground.pool).await? - wal;
    let versions = ground.row_versions().await? - versions;
    Ok(json!({
        "scenario": "plain_drain", "jobs": n_jobs, "slots": 500, "jobs_per_s": rate.jobs_per_s.round(), "worker_cpu_us_per_job": rate.worker_micros, "server_cpu_us_per_job": rate.server_micros,
        "wal_bytes_per_job": wal / n_jobs as i64, "row_versions_per_job": versions as f64 / n_jobs as f64,
    }))
}

/// Drains a thousand lanes of twenty jobs each.
pub async fn lanes(ground: Fixture) -> anyhow::Result<Value> {
    let (n_lanes, n_each) = (size::of(1_000, 20), size::of(20, 2));
    let jobs = (0..n_each).flat_map(|_| 0..n_lanes).map(|lane| (Noop { n: lane }, in_lane(lane)));
    ground.fill(jobs).await?;
    ground.analyze().await?;
    let n_jobs = (n_lanes * n_each) as usize;
    let rate = drain(&ground, 500, n_jobs).await?;
    Ok(
        json!({ "scenario": "lanes_drain", "lanes": n_lanes, "jobs": n_jobs, "slots": 500, "jobs_per_s": rate.jobs_per_s.round(), "worker_cpu_us_per_job": rate.worker_micros, "server_cpu_us_per_job": rate.server_micros }),
    )
}

/// Drains jobs beside many blocked ones, in turns with the same jobs alone. A single drain varies by a tenth and more,
/// so the medians are compared.
pub async fn beside_blocked(ground: Fixture) -> anyhow::Result<Value> {
    let (n_runnable, n_blocked) = size::of((50_000, 100_000), (100, 200));
    let (n_lanes, n_rounds) = (10, size::of(5, 1));
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..n_rounds {
        ground.empty().await?;
        alone.push(drain_runnable(&ground, n_runnable).await?);
        ground.empty().await?;
        block(&ground, n_blocked, n_lanes).await?;
        beside.push(drain_runnable(&ground, n_runnable).await?);
    }
    let (alone, beside) = (median(alone), median(beside));
    Ok(json!({
        "scenario": "beside_blocked", "rounds": n_rounds, "runnable": n_runnable, "blocked": n_blocked, "lanes": n_lanes,
        "jobs_per_s": beside.round(), "jobs_per_s_without": alone.round(), "ratio": beside / alone,
    }))
}

async fn block(ground: &Fixture, n_jobs: u64, n_lanes: u64) -> anyhow::Result<()> {
    ground.fill((0..n_jobs).map(|n| (Noop { n }, in_lane(n % n_lanes)))).await?;
    for lane in 0..n_lanes {
        sqlx::query("SELECT dalsegno.hold_lane($1, 'bench')")
            .bind(format!("lane-{lane}"))
            .execute(&ground.pool)
            .await?;
    }
    Ok(())
}

async fn drain_runnable(ground: &Fixture, n_jobs: u64) -> anyhow::Result<f64> {
    ground.fill((0..n_jobs).map(|n| (Noop { n }, Options::default()))).await?;
    ground.analyze().await?;
    Ok(drain(ground, 500, n_jobs as usize).await?.jobs_per_s)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Drains jobs whose handlers commit their end with a write of their own.
pub async fn own_commit(ground: Fixture) -> anyhow::Result<Value> {
    let n_jobs = size::of(10_000, 100);
    ground.fill((0..n_jobs).map(|n| (OwnCommit { n }, Options::default()))).await?;
    ground.analyze().await?;
    let rate = drain(&ground, 64, n_jobs as usize).await?;
    Ok(
        json!({ "scenario": "own_commit", "jobs": n_jobs, "slots": 64, "jobs_per_s": rate.jobs_per_s.round(), "worker_cpu_us_per_job": rate.worker_micros, "server_cpu_us_per_job": rate.server_micros }),
    )
}

/// Drains while a transaction that stays open for a minute keeps vacuum from removing dead rows.
pub async fn held_transaction(ground: Fixture) -> anyhow::Result<Value> {
    let n_jobs = size::of(60_000, 200);
    let held = size::of(Duration::from_secs(60), Duration::from_millis(200));
    let mut holder = ground.pool.begin().await?;
    let _: String =
        sqlx::query_scalar("SELECT pg_current_xact_id()::text").fetch_one(&mut *holder).await?;
    let began = Instant::now();
    let mut rates = Vec::new();
    while began.elapsed() < held {
        ground.fill((0..n_jobs).map(|n| (Noop { n }, Options::default()))).await?;
        rates.push(drain(&ground, 500, n_jobs as usize).await?.jobs_per_s);
    }
    holder.rollback().await?;
    let (first, last) = (rates[0], rates[rates.len() - 1]);
    Ok(json!({
        "scenario": "held_transaction", "rounds": rates.len(), "jobs_per_round": n_jobs, "held_secs": began.elapsed().as_secs(),
        "jobs_per_s_first": first.round(), "jobs_per_s_last": last.round(), "loss": 1.0 - last / first,
    }))
}

/// The rate and the cost of a drain.
struct DrainResult {
    jobs_per_s: f64,
    /// Processor time per job in microseconds.
    worker_micros: f64,
    server_micros: Option<f64>,
}

/// Drains the queue, from the start of a worker to its last acknowledged end.
async fn drain(ground: &Fixture, slots: u32, n_jobs: usize) -> anyhow::Result<DrainResult> {
    let before = ground.n_live().await?;
    let cpu = cpu::used(&ground.pool).await;
    let began = Instant::now();
    let (worker, _arrivals) = ground.start_worker(slots);
    worker.wait_for(n_jobs).await;
    worker.stop().await?;
    let took = began.elapsed();
    let cpu_after = cpu::used(&ground.pool).await;
    let ended = before - ground.n_live().await?;
    anyhow::ensure!(ended == n_jobs as i64, "{ended} of {n_jobs} jobs ended");
    let per_job = |micros: u64| micros as f64 / n_jobs as f64;
    Ok(DrainResult {
        jobs_per_s: n_jobs as f64 / took.as_secs_f64(),
        worker_micros: per_job(cpu_after.worker_micros - cpu.worker_micros),
        server_micros: cpu_after
            .server_micros
            .zip(cpu.server_micros)
            .map(|(after, before)| per_job(after - before)),
    })
}

fn in_lane(lane: u64) -> Options {
    Options { lane: Some(format!("lane-{lane}")), ..Options::default() }
}
