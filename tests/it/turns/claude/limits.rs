//! Credentials whose limit is used up.

use chrono::TimeDelta;
use dalsegno::domain::{logins, tasks::State};

use super::Stage;
use crate::{
    app::{eventually, noon},
    providers::claude::api::Play,
};

const LIMIT: &str = "retry-after: 90\r\n";

#[tokio::test]
async fn a_login_without_a_limit_left_rests_with_all_its_conversations_and_others_go_on() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("One.").await;
    stage.api.plays([Play::Fails(429, LIMIT, "rate_limit_error", "You have used up your limit.")]);
    let parked = ground.add("Two.").await;
    eventually("the login rests", async || {
        let rests = "select count(*) from dalsegno.resting_logins where login = 'main'";
        (ground.count(rests).await == 1).then_some(())
    })
    .await;
    let n_calls = stage.api.requests().len();
    // Only its own conversation is behind the parked task in its lane.
    let other = ground.add_for("writer", "second", "Three.").await;
    ground.done(&other).await;
    assert_eq!(stage.api.requests().len(), n_calls + 1);
    let login =
        ground.json("select to_jsonb(login) from dalsegno.sessions where instance = 'second'");
    assert_eq!(login.await, "spare");
    assert_eq!(ground.task(&parked).await.state, State::Queued);
    ground.advance(TimeDelta::seconds(400));
    sqlx::query("update dalsegno.jobs set run_at = now() where state = 'scheduled'")
        .execute(&ground.pool)
        .await
        .unwrap();
    ground.done(&parked).await;
    let turns = ground.turns(&parked).await;
    assert_eq!(turns.last().unwrap().attempt, 1, "no attempt is burned");
    ground.settled().await;
    worker.stop().await;
    assert_eq!(stage.api.last_messages().len(), 3);
}

#[tokio::test]
async fn a_login_that_an_operator_resumes_is_used_at_once_by_whoever_waits_for_it() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("One.").await;
    stage.api.plays([Play::Fails(429, LIMIT, "rate_limit_error", "You have used up your limit.")]);
    let parked = ground.add("Two.").await;
    eventually("the task is put off", async || {
        let put_off = "select count(*) from dalsegno.jobs where wait_reason = 'snooze'";
        (ground.count(put_off).await == 1).then_some(())
    })
    .await;
    let configured = [("claude", "main"), ("claude", "spare")];
    let mut conn = ground.pool.acquire().await.unwrap();
    let all = logins::list(&mut conn, &configured, noon()).await.unwrap();
    let names: Vec<_> = all.iter().map(|login| (login.login.as_str(), login.sessions)).collect();
    assert_eq!(names, [("main", 1), ("spare", 0)]);
    assert!(all[0].rests_until.is_some() && all[1].rests_until.is_none(), "{all:?}");
    let why = all[0].why.as_deref().unwrap();
    assert!(why.contains("has reached its limit") && !why.contains("can go on"), "{why}");
    assert_eq!(logins::resume(&mut conn, (None, "main"), noon()).await.unwrap().1, 1);
    ground.done(&parked).await;
    let again = logins::resume(&mut conn, (None, "main"), noon()).await.unwrap_err();
    assert!(again.to_string().contains("login ls"), "{again}");
    ground.settled().await;
    worker.stop().await;
}
