//! The feed, read while it is written.

use dalsegno::domain::feed::{self, Filter, Horizon, Kind, New};
use serde_json::json;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::World;
use crate::app::{eventually, noon};

async fn say(executor: impl PgExecutor<'_>, campaign_id: Uuid, words: &str) {
    let event = New {
        campaign_id: Some(campaign_id),
        task_id: None,
        session_id: None,
        kind: Kind::TurnDone,
        data: json!({ "words": words }),
    };
    feed::append(executor, &[event], noon()).await.unwrap();
}

async fn read(world: &World, horizon: &mut Horizon) -> Vec<String> {
    let after = horizon.settled();
    let sight = feed::look(&world.pool, horizon, 100).await.unwrap();
    horizon.advance(&sight);
    let filter = Filter {
        campaign_id: Some(world.campaign.id),
        after,
        up_to: horizon.settled(),
        limit: 100,
    };
    let events = feed::list(&world.pool, filter).await.unwrap();
    events.iter().map(|event| event.data["words"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_event_that_commits_late_is_not_missed() {
    let world = World::new().await;
    let id = world.campaign.id;
    let mut horizon = Horizon::at(0);
    let mut slow = world.pool.begin().await.unwrap();
    say(&mut *slow, id, "slow").await;
    say(&world.pool, id, "fast").await;
    assert_eq!(read(&world, &mut horizon).await, Vec::<String>::new());
    slow.commit().await.unwrap();
    assert_eq!(read(&world, &mut horizon).await, ["slow", "fast"]);
}

/// The late one has a higher transaction number than any that has ended: no snapshot knows of it yet.
#[tokio::test]
async fn an_event_of_a_transaction_that_no_snapshot_knows_is_not_missed() {
    let world = World::new().await;
    let id = world.campaign.id;
    let mut horizon = Horizon::at(0);
    let mut early = world.pool.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()").execute(&mut *early).await.unwrap();
    let mut late = world.pool.begin().await.unwrap();
    say(&mut *late, id, "late").await;
    say(&mut *early, id, "early").await;
    early.commit().await.unwrap();
    for _ in 0..3 {
        assert_eq!(read(&world, &mut horizon).await, Vec::<String>::new());
    }
    late.commit().await.unwrap();
    assert_eq!(read(&world, &mut horizon).await, ["late", "early"]);
}

#[tokio::test]
async fn an_event_that_is_rolled_back_holds_nobody_up_for_long() {
    let world = World::new().await;
    let id = world.campaign.id;
    let mut horizon = Horizon::at(0);
    let mut lost = world.pool.begin().await.unwrap();
    say(&mut *lost, id, "lost").await;
    say(&world.pool, id, "first").await;
    assert!(read(&world, &mut horizon).await.is_empty());
    lost.rollback().await.unwrap();
    // Other tests write in the same cluster: their transactions end, but not at a fixed moment.
    let seen = eventually("the gap is given up", async || {
        let seen = read(&world, &mut horizon).await;
        (!seen.is_empty()).then_some(seen)
    });
    assert_eq!(seen.await, ["first"]);
}

#[tokio::test]
async fn events_come_in_the_order_of_one_append() {
    let world = World::new().await;
    let event = |words: &str| New {
        campaign_id: Some(world.campaign.id),
        task_id: None,
        session_id: None,
        kind: Kind::SessionOpened,
        data: json!({ "words": words }),
    };
    let all: Vec<New> = ["a", "b", "c"].into_iter().map(event).collect();
    feed::append(&world.pool, &all, noon()).await.unwrap();
    assert_eq!(read(&world, &mut Horizon::at(0)).await, ["a", "b", "c"]);
    let filter = Filter { campaign_id: None, after: 1, up_to: i64::MAX, limit: 1 };
    let page = feed::list(&world.pool, filter).await.unwrap();
    assert_eq!((page.len(), page[0].kind.as_str()), (1, "session.opened"));
}
