//! Idempotency keys of tasks: their callers, and waits between them.

use dalsegno::domain::{
    amount::Limit,
    tasks::{self, Links, New, TaskLink},
};
use uuid::Uuid;

use super::World;
use crate::app::until_blocked;

const SHOP: &str = "key:shop:3f0c2a9be1d4";
const STOCK: &str = "key:stock:0123456789ab";

async fn add(world: &World, added_by: Option<&str>, key: &str) -> Uuid {
    let new = New { idempotency_key: Some(key), added_by, ..world.ask("Part one.") };
    world.add_new(&new).await.unwrap().task.id
}

#[tokio::test]
async fn each_caller_of_each_campaign_has_its_own_keys() {
    let world = World::new().await;
    let other = World::over(world.pool.clone(), Limit::default()).await;
    let mut all = Vec::new();
    for world in [&world, &other] {
        for added_by in [None, Some(SHOP), Some(STOCK)] {
            let first = add(world, added_by, "order-17").await;
            assert_eq!(add(world, added_by, "order-17").await, first);
            all.push(first);
        }
        // All callers without an API key are one caller.
        for added_by in ["cli:ann@host", "anonymous", "admin_key", "copywriter"] {
            assert_eq!(add(world, Some(added_by), "order-17").await, all[all.len() - 3]);
        }
        let in_sql = "select task_id from dalsegno.add_task($1, 'copywriter', 'Part one.', idempotency_key => 'order-17')";
        let in_sql = sqlx::query_scalar::<_, Uuid>(in_sql).bind(world.campaign.id);
        assert_eq!(in_sql.fetch_one(&world.pool).await.unwrap(), all[all.len() - 3]);
        // The successor of a rotated key is the same caller.
        let rotated = add(world, Some("key:shop:ffffffffffff"), "order-17").await;
        assert_eq!(rotated, all[all.len() - 2]);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[tokio::test]
async fn a_task_waits_for_keys_of_its_own_caller() {
    let world = World::new().await;
    let first = add(&world, Some(SHOP), "order-17").await;
    let after = [TaskLink::Key { key: "order-17".to_owned() }];
    let links = Links { depends_on: &after, ..Links::default() };
    let join = |added_by| New { added_by, links, ..world.ask("Join.") };
    let added = world.add_new(&join(Some(SHOP))).await.unwrap().task.id;
    let waits = tasks::waits_of(&world.pool, &[added]).await.unwrap();
    assert_eq!(waits[&added].depends_on[0].task_id, first);
    for other in [None, Some(STOCK)] {
        let refused = world.add_new(&join(other)).await;
        assert!(matches!(refused, Err(tasks::Error::NoPredecessor(_))), "{refused:?}");
    }
    let by_id = [TaskLink::Task(first)];
    let by_id = |only_of| Links { depends_on: &by_id, only_of, ..Links::default() };
    let refused = world.add_new(&New { links: by_id(Some("stock")), ..world.ask("Join.") }).await;
    assert!(matches!(refused, Err(tasks::Error::NoPredecessor(_))), "{refused:?}");
    world.add_new(&New { links: by_id(Some("shop")), ..world.ask("Join.") }).await.unwrap();
}

/// The queue has one name space for all keys. The open transaction of one caller must not block another caller.
#[tokio::test]
async fn callers_with_the_same_key_do_not_wait_for_each_other() {
    let world = World::new().await;
    let (limits, now) = (super::limits(), crate::app::noon());
    let new = |added_by, instance| New {
        idempotency_key: Some("order-17"),
        added_by,
        instance,
        ..world.ask("Part one.")
    };
    let mut first = world.pool.begin().await.unwrap();
    let added = tasks::add(&mut first, &limits, &new(Some(SHOP), "one"), now).await.unwrap();

    let mut others = world.pool.begin().await.unwrap();
    sqlx::query("set local lock_timeout = '10s'").execute(&mut *others).await.unwrap();
    let other = tasks::add(&mut others, &limits, &new(Some(STOCK), "two"), now).await.unwrap();
    let bulk = [new(Some("key:bulk:0123456789ab"), "three")];
    let bulk = tasks::add_many(&mut others, &limits, world.campaign.id, &bulk, now).await.unwrap();
    let in_sql = "select task_id from dalsegno.add_task($1, 'copywriter', 'Part one.', 'four', idempotency_key => 'order-17')";
    let in_sql = sqlx::query_scalar::<_, Uuid>(in_sql).bind(world.campaign.id);
    let in_sql = in_sql.fetch_one(&mut *others).await.unwrap();
    others.commit().await.unwrap();
    first.commit().await.unwrap();
    let again = world.add_new(&new(Some(SHOP), "one")).await.unwrap();
    assert_eq!((again.task.id, again.created), (added.task.id, false));
    let mut all = [added.task.id, other.task.id, bulk[0].id, in_sql].to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
}

#[tokio::test]
async fn a_repeated_call_waits_for_the_first_attempt_of_its_own_caller() {
    let world = World::new().await;
    let new =
        New { idempotency_key: Some("order-17"), added_by: Some(SHOP), ..world.ask("Part one.") };
    let mut first = world.pool.begin().await.unwrap();
    let limits = super::limits();
    let added = tasks::add(&mut first, &limits, &new, crate::app::noon()).await.unwrap();
    let (again, ()) = tokio::join!(world.add_new(&new), async {
        until_blocked(&world.pool).await;
        first.commit().await.unwrap();
    });
    let again = again.unwrap();
    assert_eq!((again.task.id, again.created), (added.task.id, false));
}
