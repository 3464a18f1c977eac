//! An agent from whose sessions facts are read, and a user for whom it works.

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
    turns::ground::Ground,
};

pub const AGENT: &str = "---\nname: writer\ndescription: Writes\nlearns_facts: true\ntold_facts: true\n\
                         tools: mcp__dalsegno\n---\nYou write.\n";

/// With these settings beside the one that turns it on.
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

/// In a session of its own, which is closed behind it.
pub async fn ask_alone(ground: &Ground, prompt: &str) -> Task {
    let (mode, limit) = (Some(Mode::None), Limit::default());
    ground.done(&ground.add_as("writer", "main", prompt, mode, limit).await).await
}

/// As closing and compacting do.
pub async fn request(ground: &Ground, session_id: Uuid) {
    let mut tx = ground.pool.begin().await.unwrap();
    facts::request(&mut tx, ground.campaign.id, session_id).await.unwrap();
    tx.commit().await.unwrap();
}

/// Once nothing is left to be read.
pub async fn all_read(ground: &Ground) {
    eventually("all is read", async || {
        let sql = "select count(*) from dalsegno.jobs where kind = 'extract_facts'";
        (ground.count(sql).await == 0).then_some(())
    })
    .await;
}

/// What was read, the first first.
pub async fn readings(ground: &Ground) -> Vec<Extraction> {
    let mut read = facts::extractions(&ground.pool, ground.campaign.id, None, 1000).await.unwrap();
    read.sort_by_key(|it| (it.ended_at, it.to_seq));
    read
}

/// Once an attempt has failed, and there is to be another one.
pub async fn comes_again(ground: &Ground) {
    eventually("the job comes again", async || {
        let later = "select count(*) from dalsegno.jobs where kind = 'extract_facts' and state = 'scheduled'";
        (ground.count(later).await == 1).then_some(())
    })
    .await;
}

/// As if the time of the next attempt were there.
pub async fn be_due(ground: &Ground) {
    let due = "update dalsegno.jobs set run_at = now() where kind = 'extract_facts' and state = 'scheduled'";
    sqlx::query(due).execute(&ground.pool).await.unwrap();
}
