//! The bench of the queue: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench queue                              on a private server of its own, durable
//! DATABASE_URL=postgres://… cargo bench --bench queue    on that server, in a database of its own
//! cargo bench --bench queue -- plain_drain pick_up       some scenarios only
//! ```

#![expect(clippy::print_stdout, reason = "prints its figures")]

#[path = "../common/mod.rs"]
mod common;
mod drain;
mod enqueue;
mod fixture;
mod idle;

use common::{Server, is_wanted};
use fixture::Fixture;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let ground = Fixture::new(&server).await?;
    for (name, scenario) in scenarios() {
        if is_wanted(name) {
            ground.empty().await?;
            println!("{}", scenario(ground.clone()).await?);
        }
    }
    ground.remove().await?;
    server.stop().await
}

type Scenario =
    fn(Fixture) -> futures_util::future::BoxFuture<'static, anyhow::Result<serde_json::Value>>;

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
