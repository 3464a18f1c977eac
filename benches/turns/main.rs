//! The bench of turns: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench turns                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench turns    on that server, in a database of its own
//! cargo bench --bench turns -- one_session memory        some scenarios only
//! cargo test --bench turns                               every scenario at a tiny size: its figures mean nothing
//! ```
//!
//! Turns run through the worker runtime as in the service; the simulated model answers at once.

#![expect(clippy::print_stdout, reason = "prints its figures")]

mod bare;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod contexts;
mod fixture;
mod many_sessions;
mod memory;
mod one_session;
mod stopwatch;
mod words;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use common::{Server, is_wanted};
use fixture::Fixture;
use stopwatch::Stopwatch;

type Scenario = for<'a> fn(&'a Fixture) -> BoxFuture<'a, anyhow::Result<Value>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stopwatch = Stopwatch::install()?;
    let server = Server::start().await?;
    for (name, scenario) in scenarios() {
        if is_wanted(name) {
            let ground = Fixture::new(&server, Arc::clone(&stopwatch)).await?;
            let figures = scenario(&ground).await;
            ground.remove().await?;
            println!("{}", with_load(figures?));
        }
    }
    server.stop().await
}

fn scenarios() -> [(&'static str, Scenario); 6] {
    [
        ("one_session", |ground| Box::pin(one_session::millis(ground))),
        ("bytes_written", |ground| Box::pin(one_session::bytes(ground))),
        ("many_sessions", |ground| Box::pin(many_sessions::rate(ground))),
        ("show_context", |ground| Box::pin(contexts::show(ground))),
        ("lead_context", |ground| Box::pin(contexts::of_lead(ground))),
        ("memory", |ground| Box::pin(memory::peak(ground))),
    ]
}

/// Adds the load of this machine, without which a figure means little. Linux only.
fn with_load(mut figures: Value) -> Value {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    figures["load_average"] = load.into();
    figures
}
