//! The bench of the HTTP API: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench http                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench http    on that server, in a database of its own
//! cargo bench --bench http -- bulk                      some scenarios only
//! ```
//!
//! The service answers on loopback; clients and service share the machine. No worker runs.

#![expect(clippy::print_stdout, reason = "prints its figures")]

#[path = "../common/mod.rs"]
mod common;
mod connection;
mod fixture;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use common::{Server, cpu, is_wanted, size, wal_bytes};
use connection::Connection;
use fixture::Fixture;

const CLIENTS: usize = 16;
fn measured_for() -> Duration {
    size::of(Duration::from_secs(10), Duration::from_millis(200))
}

fn bulk_rounds() -> usize {
    size::of(5, 1)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    if is_wanted("post_tasks") {
        print(measure(&server, post_tasks).await?);
    }
    if is_wanted("bulk") {
        print(measure(&server, bulk).await?);
    }
    server.stop().await
}

async fn measure(
    server: &Server,
    scenario: impl AsyncFn(&Fixture) -> anyhow::Result<Value>,
) -> anyhow::Result<Value> {
    let ground = Fixture::new(server).await?;
    let (wal, used) = (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
    let figures = scenario(&ground).await;
    let (wal_after, used_after) = (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
    let n_tasks = ground.n_tasks().await?;
    ground.remove().await?;
    let mut figures = figures?;
    figures["wal_bytes_per_task"] = ((wal_after - wal) / n_tasks.max(1)).into();
    let per_task = |micros: u64| micros / u64::try_from(n_tasks).unwrap_or(1).max(1);
    // Includes the clients, which are in the same process.
    let service = used_after.worker_micros - used.worker_micros;
    figures["service_cpu_micros_per_task"] = per_task(service).into();
    if let (Some(before), Some(after)) = (used.server_micros, used_after.server_micros) {
        figures["server_cpu_micros_per_task"] = per_task(after.saturating_sub(before)).into();
    }
    Ok(figures)
}

/// Sends one task per request, on a connection per client.
async fn post_tasks(ground: &Fixture) -> anyhow::Result<Value> {
    let clients = (0..CLIENTS).map(|client| {
        let (address, path) = (ground.address, ground.tasks());
        tokio::spawn(async move {
            let mut connection = Connection::open(address).await?;
            let (began, mut took) = (Instant::now(), Vec::new());
            while began.elapsed() < measured_for() {
                let instance = format!("copy_{client}_{}", took.len() % 100);
                let ask = json!({ "agent": "copywriter", "instance": instance, "prompt": "Write part one." });
                let asked = Instant::now();
                connection.post(&path, "", &ask.to_string(), 201).await?;
                took.push(asked.elapsed().as_secs_f64() * 1_000.0);
            }
            anyhow::Ok(took)
        })
    });
    let mut took = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        took.extend(client.await??);
    }
    took.sort_by(f64::total_cmp);
    let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    Ok(json!({
        "scenario": "post_tasks", "clients": CLIENTS, "tasks_per_s": (took.len() as f64 / measured_for().as_secs_f64()).round(),
        "p50_ms": at(50), "p99_ms": at(99),
    }))
}

/// Sends ten thousand tasks in one request: in one conversation, and in a thousand; with keys and without.
async fn bulk(ground: &Fixture) -> anyhow::Result<Value> {
    let path = format!("{}/bulk", ground.tasks());
    let mut connection = Connection::open(ground.address).await?;
    let n_tasks = size::of(10_000, 50);
    let mut figures = json!({ "scenario": "bulk", "tasks": n_tasks });
    for (name, n_instances, has_keys) in [
        ("one_lane_secs", 1, false),
        ("thousand_lanes_secs", 1_000, false),
        ("with_keys_secs", 1_000, true),
    ] {
        let mut took = Vec::new();
        for round in 0..bulk_rounds() {
            let line = |n: usize| {
                let key = has_keys.then(|| format!("{round}-{n}"));
                json!({
                    "agent": "copywriter", "instance": format!("copy_{}", n % n_instances), "prompt": "Write part one.",
                    "idempotency_key": key,
                })
            };
            let body: Value = (0..n_tasks).map(line).collect();
            let body = body.to_string();
            let asked = Instant::now();
            connection.post(&path, "", &body, 201).await?;
            took.push(asked.elapsed().as_secs_f64());
        }
        took.sort_by(f64::total_cmp);
        figures[name] =
            json!({ "median": took[bulk_rounds() / 2], "most": took[bulk_rounds() - 1] });
    }
    Ok(figures)
}

/// Prints the figures with the load of this machine, without which they mean little. Linux only.
fn print(mut figures: Value) {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    figures["load_average"] = load.into();
    println!("{figures}");
}
