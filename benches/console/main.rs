//! The bench of the web console: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench console                              on a private server, whose large database is kept for the next run
//! DATABASE_URL=postgres://… cargo bench --bench console    on that server, in a database of its own
//! cargo bench --bench console -- pages tabs                some scenarios only
//! ```
//!
//! The database has 1,000,000 tasks, 10,000 sessions, and one session of 5,000 messages (`fill.sql`). Browsers and service share the machine.

#![expect(clippy::print_stdout, reason = "prints its figures")]

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod feed_rows;
mod first_load;
mod fixture;
mod pages;
mod scale;
mod tabs;

use serde_json::Value;

use common::is_wanted;
use fixture::{Fixture, LargeDatabase};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if let Some(command) = tabs::Browsers::of_arguments()? {
        return command.run().await;
    }
    let large = LargeDatabase::open().await?;
    let ground = Fixture::new(&large).await?;
    let figures = measure(&large, &ground).await;
    ground.stop().await?;
    large.close().await?;
    figures
}

async fn measure(large: &LargeDatabase, ground: &Fixture) -> anyhow::Result<()> {
    if is_wanted("pages") {
        for page in pages::all(ground).await? {
            print(pages::measure(ground, &page).await?);
        }
    }
    if is_wanted("first_load") {
        for page in pages::all(ground).await? {
            print(first_load::measure(ground, &page).await?);
        }
    }
    if is_wanted("tabs") {
        print(tabs::measure(ground).await?);
    }
    if is_wanted("feed_rows") {
        print(feed_rows::trigger(ground).await?);
        print(feed_rows::beside_reader(large).await?);
    }
    Ok(())
}

/// Prints the figures with the load of this machine, without which they mean little. Linux only.
fn print(mut figures: Value) {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    figures["load_average"] = load.into();
    println!("{figures}");
}

/// Returns the quantile `share` of the figures; 0 is the smallest.
fn quantile(figures: &mut [f64], share: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    let last = figures.len().saturating_sub(1) as f64;
    figures.get((last * share).round() as usize).copied().unwrap_or_default()
}
