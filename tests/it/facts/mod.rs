//! Facts about the users for whom campaigns work.

mod extraction;
mod injection;
mod loops;
mod providers;
pub mod setup;
mod store;
mod uses;
mod writing;

use chrono::{DateTime, Utc};
use dalsegno::domain::{
    Page,
    facts::{self, Config, Error, Fact, Filter, RecordOutcome, Statement, StatementOrigin},
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{app::noon, conversations::world::World};

pub const USER: &str = "ann@example.org";
const SESSION: Uuid = Uuid::from_u128(77);

pub fn config() -> Config {
    Config { extract: true, user_max: 50, answer_max: 20, told_max_bytes: 4096, extracted_days: 0 }
}

/// Records a fact as read from a session at that time.
pub async fn read(world: &World, said: (&str, &str), said_at: DateTime<Utc>) -> RecordOutcome {
    read_in(SESSION, world, said, said_at).await
}

pub async fn read_in(
    session_id: Uuid,
    world: &World,
    (attribute, text): (&str, &str),
    said_at: DateTime<Utc>,
) -> RecordOutcome {
    let found = StatementOrigin::Extracted {
        campaign_id: world.campaign.id,
        session_id,
        turn: 3,
        task_id: Uuid::from_u128(7),
        agent: "copywriter",
    };
    let stated = Statement { user: USER, attribute, text, said_at, expires_at: None, found };
    record(&world.pool, &stated).await.unwrap()
}

pub async fn record(pool: &PgPool, stated: &Statement<'_>) -> Result<RecordOutcome, Error> {
    let mut tx = pool.begin().await.unwrap();
    let recorded = facts::record(&mut tx, stated, (&config(), "english"), noon()).await?;
    tx.commit().await.unwrap();
    Ok(recorded)
}

pub async fn state(pool: &PgPool, user: &str, (about, text): (&str, &str)) -> Result<Fact, Error> {
    let mut tx = pool.begin().await.unwrap();
    let what = (user, about, text);
    let settings = (&config(), "english");
    let fact =
        facts::record_statement(&mut tx, what, None, "cli:ann@host", settings, noon()).await?;
    tx.commit().await.unwrap();
    Ok(fact)
}

/// Lists all facts, newest first.
pub async fn all(pool: &PgPool, user: &str, with_ended: bool) -> Vec<Fact> {
    let page = Page { after: None, limit: 1000 };
    facts::list(pool, user, Filter { with_ended }, page, noon()).await.unwrap()
}

pub async fn texts(pool: &PgPool, user: &str) -> Vec<String> {
    let mut texts: Vec<_> =
        all(pool, user, false).await.into_iter().map(|fact| fact.text).collect();
    texts.sort();
    texts
}
