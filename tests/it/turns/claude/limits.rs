//! Credentials whose limit is used up.

use chrono::TimeDelta;
use dalsegno::domain::{credentials, tasks::State};

use super::Setup;
use crate::{
    app::{eventually, noon},
    providers::claude::api::Play,
};

const LIMIT: &str = "retry-after: 90\r\n";

#[tokio::test]
async fn a_credential_that_hit_its_limit_is_paused_with_all_its_conversations_and_others_continue()
{
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Fails(429, LIMIT, "rate_limit_error", "You have used up your limit.")]);
    let parked = fixture.add("Two.").await;
    eventually("the credential is paused", async || {
        let rests = "select count(*) from dalsegno.paused_credentials where credential = 'main'";
        (fixture.count(rests).await == 1).then_some(())
    })
    .await;
    let n_calls = setup.api.requests().len();
    // Only its own conversation is behind the parked task in its lane.
    let other = fixture.add_for("writer", "second", "Three.").await;
    fixture.done(&other).await;
    assert_eq!(setup.api.requests().len(), n_calls + 1);
    let credential = fixture
        .json("select to_jsonb(credential) from dalsegno.sessions where instance = 'second'");
    assert_eq!(credential.await, "spare");
    assert_eq!(fixture.task(&parked).await.state, State::Queued);
    fixture.advance(TimeDelta::seconds(400));
    sqlx::query("update dalsegno.jobs set run_at = now() where state = 'scheduled'")
        .execute(&fixture.pool)
        .await
        .unwrap();
    fixture.done(&parked).await;
    let turns = fixture.turns(&parked).await;
    assert_eq!(turns.last().unwrap().attempt, 1, "no attempt is used up");
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(setup.api.last_messages().len(), 3);
}

#[tokio::test]
async fn a_resumed_credential_is_used_at_once_by_waiting_tasks() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Fails(429, LIMIT, "rate_limit_error", "You have used up your limit.")]);
    let parked = fixture.add("Two.").await;
    eventually("the task is postponed", async || {
        let put_off = "select count(*) from dalsegno.jobs where wait_reason = 'snooze'";
        (fixture.count(put_off).await == 1).then_some(())
    })
    .await;
    let configured = [("claude", "main"), ("claude", "spare")];
    let mut conn = fixture.pool.acquire().await.unwrap();
    let all = credentials::list(&mut conn, &configured, noon()).await.unwrap();
    let names: Vec<_> =
        all.iter().map(|credential| (credential.name.as_str(), credential.sessions)).collect();
    assert_eq!(names, [("main", 1), ("spare", 0)]);
    assert!(all[0].paused_until.is_some() && all[1].paused_until.is_none(), "{all:?}");
    let why = all[0].why.as_deref().unwrap();
    assert!(why.contains("has reached its limit") && !why.contains("can go on"), "{why}");
    assert_eq!(credentials::resume(&mut conn, (None, "main"), noon()).await.unwrap().1, 1);
    fixture.done(&parked).await;
    let again = credentials::resume(&mut conn, (None, "main"), noon()).await.unwrap_err();
    assert!(again.to_string().contains("credential ls"), "{again}");
    fixture.settled().await;
    worker.stop().await;
}
