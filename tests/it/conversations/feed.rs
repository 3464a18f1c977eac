//! The feed, read while it is written.

use dalsegno::domain::feed::{self, Filter, Horizon, Kind, New};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
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
    let sight = feed::read_ahead(&world.pool, horizon, 100).await.unwrap();
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

/// The late transaction has a higher number than all ended ones, so no snapshot knows it yet.
#[tokio::test]
async fn an_event_of_a_transaction_outside_every_snapshot_is_not_missed() {
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

/// Followers poll four times a second, independent of the other events of the campaign.
#[tokio::test]
async fn a_follower_reads_only_the_events_of_its_task() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let others = "insert into dalsegno.feed (created_at, campaign_id, task_id, kind)
                  select now(), $1, gen_random_uuid(), 'turn.progress' from generate_series(1, 20000)";
    sqlx::query(others).bind(world.campaign.id).execute(&world.pool).await.unwrap();
    sqlx::query("analyze dalsegno.feed").execute(&world.pool).await.unwrap();
    let late = world.add("Part two.").await;
    let read = async |conn: &mut PgConnection| {
        let sql = "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables
                    where schemaname = 'dalsegno' and relname = 'feed'";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(conn).await.unwrap()
    };
    for task in [task.id, late.id] {
        // Statistics are sent between transactions only.
        let mut tx = world.pool.begin().await.unwrap();
        let before = read(&mut tx).await;
        let first = feed::first_of_task(&mut *tx, task).await.unwrap().unwrap();
        let events = feed::of_task(&mut *tx, task, first - 1, i64::MAX, 500).await.unwrap();
        assert_eq!(events.len(), 1);
        let n_read = read(&mut tx).await - before;
        // One or two rows per statement; the campaign has 20,000.
        assert!(n_read <= 10, "{n_read} rows were read");
    }
}

#[tokio::test]
async fn a_rolled_back_event_delays_readers_only_briefly() {
    let world = World::new().await;
    let id = world.campaign.id;
    let mut horizon = Horizon::at(0);
    let mut lost = world.pool.begin().await.unwrap();
    say(&mut *lost, id, "lost").await;
    say(&world.pool, id, "first").await;
    assert!(read(&world, &mut horizon).await.is_empty());
    lost.rollback().await.unwrap();
    // Other tests write in the same cluster, and their transactions end at varying times.
    let seen = eventually("the gap is skipped", async || {
        let seen = read(&world, &mut horizon).await;
        (!seen.is_empty()).then_some(seen)
    });
    assert_eq!(seen.await, ["first"]);
}

#[tokio::test]
async fn events_of_one_append_keep_their_order() {
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
