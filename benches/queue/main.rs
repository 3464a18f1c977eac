//! The queue's bench: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench queue                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench queue    on that server, in a database of its own
//! cargo bench --bench queue -- plain_drain pick_up       some scenarios only
//! ```

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints its figures, and is told its server by the environment"
)]

mod cpu;
mod drain;
mod enqueue;
mod ground;
mod idle;

use dalsegno::db::embedded::{self, Embedded};
use sqlx::postgres::PgConnectOptions;

use ground::Ground;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let folder = tempfile::tempdir()?;
    let (server, embedded) = server(folder.path()).await?;
    let ground = Ground::new(&server).await?;
    for (name, scenario) in scenarios() {
        if chosen.is_empty() || chosen.iter().any(|wanted| wanted == name) {
            ground.empty().await?;
            println!("{}", scenario(ground.clone()).await?);
        }
    }
    ground.remove().await?;
    if let Some(embedded) = embedded {
        embedded.stop().await?;
    }
    Ok(())
}

/// The server of `DATABASE_URL`, or a private one that syncs to disk like that of a first run.
async fn server(folder: &std::path::Path) -> anyhow::Result<(PgConnectOptions, Option<Embedded>)> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return Ok((url.parse()?, None));
    }
    let config = embedded::Config { data_dir: folder.join("data"), ..embedded::Config::default() };
    let embedded = embedded::start(&config).await?;
    Ok((embedded.connect_options(), Some(embedded)))
}

type Scenario =
    fn(Ground) -> futures_util::future::BoxFuture<'static, anyhow::Result<serde_json::Value>>;

fn scenarios() -> [(&'static str, Scenario); 11] {
    [
        ("plain_drain", |ground| Box::pin(drain::plain(ground))),
        ("lanes_drain", |ground| Box::pin(drain::lanes(ground))),
        ("beside_blocked", |ground| Box::pin(drain::beside_blocked(ground))),
        ("own_commit", |ground| Box::pin(drain::own_commit(ground))),
        ("held_transaction", |ground| Box::pin(drain::held_transaction(ground))),
        ("bare_insert", |ground| Box::pin(enqueue::bare(ground))),
        ("enqueue_one_by_one", |ground| Box::pin(enqueue::one_by_one(ground))),
        ("enqueue_into_lanes", |ground| Box::pin(enqueue::into_lanes(ground))),
        ("enqueue_bulk", |ground| Box::pin(enqueue::bulk(ground))),
        ("pick_up", |ground| Box::pin(idle::pick_up(ground))),
        ("idle_queries", |ground| Box::pin(idle::queries(ground))),
    ]
}
