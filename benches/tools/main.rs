//! The bench of the tools: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench tools                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench tools    on that server, in a database of its own
//! cargo bench --bench tools -- calls                     some scenarios only
//! ```
//!
//! The cost of the tools in a cold turn on Claude needs the real CLI, and is measured by a test: `cargo test --release
//! --all-features --test it -- a_cold_turn --nocapture`.

#![expect(clippy::print_stdout, reason = "prints its figures")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
#[path = "../http/connection.rs"]
mod connection;
mod fixture;
mod ollama;
mod rounds;

use futures_util::future::BoxFuture;
use serde_json::Value;

use common::{Server, cpu, is_wanted, wal_bytes};
use fixture::Fixture;

type Scenario = for<'a> fn(&'a Fixture) -> BoxFuture<'a, anyhow::Result<Vec<Value>>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    for (name, scenario) in scenarios() {
        if is_wanted(name) {
            let ground = Fixture::new(&server).await?;
            let (wal, used) = (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
            let figures = scenario(&ground).await;
            let (wal_after, used_after) =
                (wal_bytes(&ground.pool).await?, cpu::used(&ground.pool).await);
            ground.remove().await?;
            for figures in figures? {
                println!("{}", with_load(figures));
            }
            let micros = used_after.worker_micros - used.worker_micros;
            let server = used_after.server_micros.zip(used.server_micros);
            println!(
                "{}",
                serde_json::json!({
                    "scenario": name, "all_of_it": true, "wal_bytes": wal_after - wal,
                    "service_and_clients_cpu_ms": micros / 1_000,
                    "server_cpu_ms": server.map(|(after, before)| after.saturating_sub(before) / 1_000),
                })
            );
        }
    }
    server.stop().await
}

fn scenarios() -> [(&'static str, Scenario); 2] {
    [
        ("calls", |ground| Box::pin(calls::over_loopback(ground))),
        ("rounds", |ground| Box::pin(rounds::of_ollama(ground))),
    ]
}

/// Returns the quantile `share` of the times; 0 is the shortest.
fn at(millis: &mut [f64], share: f64) -> f64 {
    millis.sort_by(f64::total_cmp);
    millis[((millis.len() - 1) as f64 * share).round() as usize]
}

/// Adds the load of this machine, without which a figure means little. Linux only.
fn with_load(mut figures: Value) -> Value {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    figures["load_average"] = load.into();
    figures
}
