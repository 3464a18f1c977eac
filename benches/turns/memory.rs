//! The memory of a worker process with many live conversations. Linux only.

use std::{process::Stdio, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::process::{Child, Command};

use crate::{common::size, fixture::Fixture};

fn n_sessions() -> usize {
    size::of(1_000, 4)
}

fn n_turns() -> usize {
    size::of(4, 1)
}

fn n_campaigns() -> usize {
    size::of(20, 2)
}

/// Measures the peak memory of a `worker-turns`. Live sessions are those with a turn since the process began.
pub async fn peak(ground: &Fixture) -> anyhow::Result<Value> {
    let conversations = ground.conversations(n_sessions(), n_campaigns()).await?;
    ground.add(&ground.pool, &conversations, n_turns()).await?;
    let mut worker = start(ground)?;
    until_done(&ground.pool, &mut worker).await?;
    let status = status(&worker)?;
    let megabytes = |field| Some(kilobytes(&status, field)? as f64 / 1024.0);
    let figures = json!({
        "scenario": "memory", "sessions": n_sessions(), "turns_each": n_turns(), "slots": ground.config.worker.turns_slots,
        "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "peak_rss_mb": megabytes("VmHWM"), "rss_mb_at_the_end": megabytes("VmRSS"),
    });
    worker.kill().await?;
    Ok(figures)
}

#[expect(clippy::disallowed_methods, reason = "the worker as an operator starts it")]
fn start(ground: &Fixture) -> anyhow::Result<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worker-turns"));
    command.env_clear().env("DALSEGNO_CONFIG", &ground.settings).env("DATABASE_URL", &ground.url);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.kill_on_drop(true).spawn().context("starting worker-turns")
}

async fn until_done(pool: &PgPool, worker: &mut Child) -> anyhow::Result<()> {
    let left = "select count(*) from dalsegno.tasks where state <> 'done'";
    while sqlx::query_scalar::<_, i64>(left).fetch_one(pool).await? > 0 {
        anyhow::ensure!(worker.try_wait()?.is_none(), "worker-turns has ended too early");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

fn status(worker: &Child) -> anyhow::Result<String> {
    let pid = worker.id().context("worker-turns runs")?;
    Ok(std::fs::read_to_string(format!("/proc/{pid}/status"))?)
}

fn kilobytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
