//! An agent with fact extraction, and a user for whom it works.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    amount::Limit,
    facts::{self, Extraction},
    tasks::Task,
};
use uuid::Uuid;

use super::ANN;
use crate::{
    app::{eventually, noon},
    turns::fixture::Ground,
};

pub const AGENT: &str = "---\nname: writer\ndescription: Writes\nlearns_facts: true\ntold_facts: true\n\
                         tools: mcp__dalsegno\n---\nYou write.\n";

/// Sets up a ground with extraction enabled, and with these settings.
pub async fn ground(settings: &[(&str, &str)]) -> Ground {
    let mut all = vec![("facts.extract", "true")];
    all.extend(settings);
    let ground = Ground::new(&all).await;
    ground.write_agent("writer", AGENT);
    set_user(&ground, ANN).await;
    ground
}

pub async fn set_user(ground: &Ground, user: &str) {
    let mut tx = ground.pool.begin().await.unwrap();
    facts::set_user(&mut tx, ground.campaign.id, user, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

/// Runs a task in a session of its own, which is closed after it.
pub async fn ask_alone(ground: &Ground, prompt: &str) -> Task {
    let (mode, limit) = (Some(Mode::None), Limit::default());
    ground.done(&ground.add_as("writer", "main", prompt, mode, limit).await).await
}

/// Requests an extraction, as closing and compacting do.
pub async fn request(ground: &Ground, session_id: Uuid) {
    let mut tx = ground.pool.begin().await.unwrap();
    facts::request(&mut tx, ground.campaign.id, session_id).await.unwrap();
    tx.commit().await.unwrap();
}

/// Waits until all is read.
pub async fn all_read(ground: &Ground) {
    eventually("all stretches are extracted", async || {
        let sql = "select count(*) from dalsegno.jobs where kind = 'extract_facts'";
        (ground.count(sql).await == 0).then_some(())
    })
    .await;
}

/// Returns the readings, oldest first.
pub async fn readings(ground: &Ground) -> Vec<Extraction> {
    let mut read = facts::extractions(&ground.pool, ground.campaign.id, None, 1000).await.unwrap();
    read.sort_by_key(|it| (it.ended_at, it.to_seq));
    read
}

/// Waits until an attempt has failed and another one is scheduled.
pub async fn comes_again(ground: &Ground) {
    eventually("the job is retried", async || {
        let later = "select count(*) from dalsegno.jobs where kind = 'extract_facts' and state = 'scheduled'";
        (ground.count(later).await == 1).then_some(())
    })
    .await;
}

/// Makes the next attempt due.
pub async fn be_due(ground: &Ground) {
    let due = "update dalsegno.jobs set run_at = now() where kind = 'extract_facts' and state = 'scheduled'";
    sqlx::query(due).execute(&ground.pool).await.unwrap();
}
