//! The bench of the board, of joined tasks and of recalled facts: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench board                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench board    on that server, in a database of its own
//! cargo bench --bench board -- mentions join             some scenarios only
//! ```

#![expect(clippy::print_stdout, reason = "prints its figures")]

mod assemble;
#[path = "../common/mod.rs"]
mod common;
mod fixture;
mod join;
mod mentions;
mod recall;
mod window;

use futures_util::future::BoxFuture;
use serde_json::Value;

use common::{Server, is_wanted};
use fixture::Fixture;

type Scenario = for<'a> fn(&'a Fixture) -> BoxFuture<'a, anyhow::Result<Value>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    for (name, scenario) in scenarios() {
        if is_wanted(name) {
            let ground = Fixture::new(&server).await?;
            let figures = scenario(&ground).await;
            ground.remove().await?;
            println!("{}", with_load(figures?));
        }
    }
    server.stop().await
}

fn scenarios() -> [(&'static str, Scenario); 5] {
    [
        ("mentions", |ground| Box::pin(mentions::post_to_ready(ground))),
        ("window", |ground| Box::pin(window::of_very_many(ground))),
        ("assemble", |_| Box::pin(async { assemble::posts_behind_messages() })),
        ("recall", |ground| Box::pin(recall::of_very_many(ground))),
        ("join", |ground| Box::pin(join::of_a_thousand(ground))),
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
