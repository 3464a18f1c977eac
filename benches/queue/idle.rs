//! A worker with little to do.

use std::time::{Duration, Instant};

use dalsegno::queue::{Options, enqueue};
use serde_json::{Value, json};

use crate::{
    common::size,
    fixture::{Fixture, MARK, Noop},
};

/// Measures from the commit of an enqueue to the first line of its handler, on an idle worker.
pub async fn pick_up(ground: Fixture) -> anyhow::Result<Value> {
    let n_jobs = size::of(200, 5);
    let (worker, mut arrivals) = ground.start_worker(16);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut millis = Vec::with_capacity(n_jobs);
    let mut conn = ground.pool.acquire().await?;
    for n in 0..n_jobs as u64 {
        // Uneven pauses, so that the jobs arrive at all phases of the worker's naps.
        tokio::time::sleep(Duration::from_millis(40 + (n * 37) % 160)).await;
        enqueue(&mut *conn, &Noop { n: n | MARK }, &Options::default()).await?;
        let committed = Instant::now();
        let (_, ran) =
            arrivals.recv().await.ok_or_else(|| anyhow::anyhow!("the worker is gone"))?;
        millis.push(ran.saturating_duration_since(committed).as_secs_f64() * 1e3);
    }
    worker.stop().await?;
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share).round() as usize];
    Ok(
        json!({ "scenario": "pick_up", "jobs": n_jobs, "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0) }),
    )
}

/// Measures the transactions per second that an idle worker adds to those of the server without it.
pub async fn queries(ground: Fixture) -> anyhow::Result<Value> {
    let without = per_second(&ground).await?;
    let (worker, _arrivals) = ground.start_worker(16);
    tokio::time::sleep(size::of(Duration::from_secs(5), Duration::from_millis(500))).await;
    let with = per_second(&ground).await?;
    worker.stop().await?;
    Ok(
        json!({ "scenario": "idle_queries", "per_s": with - without, "per_s_without_worker": without }),
    )
}

/// Counts over a whole minute, which is the period of autovacuum.
async fn per_second(ground: &Fixture) -> anyhow::Result<f64> {
    let before = transactions(ground).await?;
    let began = Instant::now();
    tokio::time::sleep(size::of(Duration::from_secs(60), Duration::from_millis(500))).await;
    // The reading itself is one transaction.
    let n = transactions(ground).await? - before - 1;
    Ok(n as f64 / began.elapsed().as_secs_f64())
}

async fn transactions(ground: &Fixture) -> anyhow::Result<i64> {
    // Backends report at most once a second; the pauses around this are longer.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    Ok(sqlx::query_scalar(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(&ground.pool)
    .await?)
}
