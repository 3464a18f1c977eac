//! An agent with fact extraction, and a user for whom it works.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    amount::Limit,
    facts::{self, Extraction},
    tasks::Task,
};
use uuid::Uuid;

use super::USER;
use crate::{
    app::{eventually, noon},
    turns::fixture::Fixture,
};

pub const AGENT: &str = "---\nname: writer\ndescription: Writes\nlearns_facts: true\ntold_facts: true\n\
                         tools: mcp__dalsegno\n---\nYou write.\n";

/// Sets up a ground with extraction enabled, and with these settings.
pub async fn fixture(settings: &[(&str, &str)]) -> Fixture {
    let mut all = vec![("facts.extract", "true")];
    all.extend(settings);
    let fixture = Fixture::new(&all).await;
    fixture.write_agent("writer", AGENT);
    set_user(&fixture, USER).await;
    fixture
}

pub async fn set_user(fixture: &Fixture, user: &str) {
    let mut tx = fixture.pool.begin().await.unwrap();
    facts::set_user(&mut tx, fixture.campaign.id, user, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

/// Runs a task in a session of its own, which is closed after it.
pub async fn run_in_own_session(fixture: &Fixture, prompt: &str) -> Task {
    let (mode, limit) = (Some(Mode::None), Limit::default());
    fixture.done(&fixture.add_as("writer", "main", prompt, mode, limit).await).await
}

/// Requests an extraction, as closing and compacting do.
pub async fn request(fixture: &Fixture, session_id: Uuid) {
    let mut tx = fixture.pool.begin().await.unwrap();
    facts::request(&mut tx, fixture.campaign.id, session_id).await.unwrap();
    tx.commit().await.unwrap();
}

/// Waits until all is read.
pub async fn wait_for_extractions(fixture: &Fixture) {
    eventually("all stretches are extracted", async || {
        let sql = "select count(*) from dalsegno.jobs where kind = 'extract_facts'";
        (fixture.count(sql).await == 0).then_some(())
    })
    .await;
}

/// Returns the readings, oldest first.
pub async fn extractions(fixture: &Fixture) -> Vec<Extraction> {
    let mut read =
        facts::extractions(&fixture.pool, fixture.campaign.id, None, 1000).await.unwrap();
    read.sort_by_key(|it| (it.ended_at, it.to_seq));
    read
}

/// Waits until an attempt has failed and another one is scheduled.
pub async fn wait_for_retry(fixture: &Fixture) {
    eventually("the job is retried", async || {
        let later = "select count(*) from dalsegno.jobs where kind = 'extract_facts' and state = 'scheduled'";
        (fixture.count(later).await == 1).then_some(())
    })
    .await;
}

/// Makes the next attempt due.
pub async fn make_jobs_due(fixture: &Fixture) {
    let due = "update dalsegno.jobs set run_at = now() where kind = 'extract_facts' and state = 'scheduled'";
    sqlx::query(due).execute(&fixture.pool).await.unwrap();
}
