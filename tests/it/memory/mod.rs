//! The memory of a campaign: edicts, records and journals.

mod access;
pub mod edicts_in_context;
mod embeddings;
mod figures;
mod import;
mod read_limits;
mod retention;
mod search;
mod tools;
mod writing;

use dalsegno::domain::memory::{self, Config, Error, Item, Kind, MemoryCaller, New, PublishResult};
use uuid::Uuid;

use crate::{app::noon, conversations::world::World};

pub const OPERATOR: MemoryCaller<'static> = MemoryCaller::Operator { label: "cli:ann@host" };

pub fn config() -> Config {
    Config {
        item_max_bytes: 51_200,
        agent_max_bytes: 1024 * 1024,
        warn_percent: 80,
        edicts_max_bytes: 32_768,
        language: "english".to_owned(),
        embeddings_model: String::new(),
        embeddings_timeout_ms: 2_000,
        embeddings_min_percent: 30,
        keep_days: 90,
    }
}

/// Returns an agent in the third turn of a task.
pub fn agent(name: &str) -> MemoryCaller<'_> {
    MemoryCaller::Agent { name, is_lead: name == "planner", task_id: Uuid::from_u128(7), turn: 3 }
}

pub fn new<'a>(kind: Kind, name: &'a str, body: &'a str) -> New<'a> {
    New {
        kind,
        owner: None,
        name: Some(name),
        title: "What it is about",
        body,
        expires_at: None,
        expected_version: None,
        is_imported: false,
    }
}

pub async fn publish(
    world: &World,
    new: &New<'_>,
    by: &MemoryCaller<'_>,
) -> Result<PublishResult, Error> {
    publish_with(world, new, by, &config()).await
}

pub async fn publish_with(
    world: &World,
    new: &New<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
) -> Result<PublishResult, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let written = memory::publish(&mut tx, world.campaign.id, new, by, config, noon()).await?;
    tx.commit().await.unwrap();
    Ok(written)
}

pub async fn revoke(
    world: &World,
    named: (Kind, Option<&str>, &str),
    by: &MemoryCaller<'_>,
) -> Result<Item, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let item = memory::revoke(&mut tx, world.campaign.id, named, by, noon()).await?;
    tx.commit().await.unwrap();
    Ok(item)
}

pub async fn read(
    world: &World,
    named: (Kind, Option<&str>, &str),
    by: &MemoryCaller<'_>,
) -> Result<Item, Error> {
    let mut conn = world.pool.acquire().await.unwrap();
    memory::by_name(&mut conn, world.campaign.id, named, by, noon()).await
}

/// Lists kind, owner and name of the items that a reader sees, newest first.
pub async fn listed(world: &World, by: &MemoryCaller<'_>) -> Vec<String> {
    let page = dalsegno::domain::Page { after: None, limit: 1000 };
    let filter = memory::Filter::default();
    let items = memory::list(&world.pool, world.campaign.id, filter, by, page, noon());
    items.await.unwrap().iter().map(reference).collect()
}

pub fn reference(item: &Item) -> String {
    let owner = item.owner.as_ref().map(|owner| format!("{owner}:")).unwrap_or_default();
    format!("{} {owner}{}", item.kind.as_str(), item.name)
}
