//! A post that mentions twenty agents.

use std::time::Instant;

use dalsegno::{
    clock::{Clock as _, SystemClock},
    domain::mentions::{self, NewPost},
};
use serde_json::{Value, json};

use crate::{
    at,
    common::{cpu, size, wal_bytes},
    fixture::{Fixture, N_AGENTS, agent},
};

fn n_warm_up() -> usize {
    size::of(20, 1)
}

fn n_measured() -> usize {
    size::of(200, 3)
}

const BAR_MS: f64 = 20.0;

/// Measures from the begin of the post's transaction to its acknowledged commit, after which the tasks can be claimed.
/// Each post is in a campaign of its own, so that no task waits for another one of its conversation.
pub async fn post_to_ready(ground: &Fixture) -> anyhow::Result<Value> {
    let mut millis = Vec::with_capacity(n_measured());
    for _ in 0..n_warm_up() {
        one(ground).await?;
    }
    let (wal, cpu) = (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
    for _ in 0..n_measured() {
        millis.push(one(ground).await?);
    }
    let (wal_after, cpu_after) = (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
    let server =
        cpu_after.server_micros.zip(cpu.server_micros).map(|(after, before)| after - before);
    let n_posts = n_measured() as f64;
    // Includes the campaign of each post, and the query for ready tasks.
    Ok(json!({
        "scenario": "mentions", "mentions": N_AGENTS, "posts": n_measured(), "p50_ms": at(&mut millis, 0.5),
        "p99_ms": at(&mut millis, 0.99), "max_ms": at(&mut millis, 1.0), "bar_ms": BAR_MS,
        "wal_bytes_per_post": ((wal_after - wal) as f64 / n_posts).round(),
        "client_cpu_us_per_post": ((cpu_after.worker_micros - cpu.worker_micros) as f64 / n_posts).round(),
        "server_cpu_us_per_post": server.map(|micros| (micros as f64 / n_posts).round()),
    }))
}

async fn one(ground: &Fixture) -> anyhow::Result<f64> {
    let (catalogue, campaign_id) = (ground.catalogue(), ground.campaign().await?);
    let names: Vec<String> = (0..N_AGENTS).map(|n| format!("@{}", agent(n))).collect();
    let text = format!("{}: what is open on your side?", names.join(" "));
    let asked = NewPost {
        campaign_id,
        text: &text,
        to: None,
        reply_to: None,
        idempotency_key: None,
        added_by: "bench",
    };
    let limits = (&ground.config.mentions, &ground.config.tasks);
    let began = Instant::now();
    let mut tx = ground.pool.begin().await?;
    mentions::post(&mut tx, &catalogue, limits, &asked, SystemClock.now()).await?;
    tx.commit().await?;
    let took = began.elapsed();
    let n_ready: i64 = sqlx::query_scalar(
        "select count(*) from dalsegno.tasks as t join dalsegno.jobs as j on j.id = t.job_id
          where t.campaign_id = $1 and j.state = 'ready'",
    )
    .bind(campaign_id)
    .fetch_one(&ground.pool)
    .await?;
    anyhow::ensure!(usize::try_from(n_ready) == Ok(N_AGENTS), "{n_ready} tasks are ready");
    Ok(took.as_secs_f64() * 1e3)
}
