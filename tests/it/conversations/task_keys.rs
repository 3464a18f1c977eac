//! Idempotency keys of tasks: whose they are, and what an older version and this one find of each other's.

use dalsegno::domain::{
    amount::Limit,
    tasks::{self, After, Links, New},
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::World;
use crate::app::eventually;

const SHOP: &str = "key:shop:3f0c2a9be1d4";
const STOCK: &str = "key:stock:0123456789ab";

async fn add(world: &World, added_by: Option<&str>, key: &str) -> Uuid {
    let new = New { idempotency_key: Some(key), added_by, ..world.ask("Part one.") };
    world.add_new(&new).await.unwrap().task.id
}

/// What a service of an older version does for many tasks: the job under the text of the key, then the task.
async fn add_as_before(
    conn: &mut PgConnection,
    world: &World,
    added_by: &str,
    key: &str,
) -> (i64, bool) {
    let job = "select job_id, created from dalsegno.enqueue_many(jsonb_build_array(jsonb_build_object(
                 'kind', 'run_turn', 'queue', 'turns', 'lane', $1 || '/copywriter/main', 'group_key', $1, 'idempotency_key', 'task:' || $2,
                 'payload', jsonb_build_object('asked',
                   dalsegno.digest_of_task($1::uuid, 'copywriter', 'main', 'Part one.', 'continue', null, null)))))";
    let campaign = world.campaign.id.to_string();
    let (job_id, created): (i64, bool) =
        sqlx::query_as(job).bind(&campaign).bind(key).fetch_one(&mut *conn).await.unwrap();
    if created {
        let task = "insert into dalsegno.tasks (id, campaign_id, job_id, created_at, session_mode, agent, instance, prompt, added_by)
                    values (gen_random_uuid(), $1::uuid, $2, now(), 'continue', 'copywriter', 'main', 'Part one.', $3)";
        let task = sqlx::query(task).bind(campaign).bind(job_id).bind(added_by);
        task.execute(conn).await.unwrap();
    }
    (job_id, created)
}

#[tokio::test]
async fn each_caller_of_each_campaign_has_keys_of_its_own() {
    let world = World::new().await;
    let other = World::over(world.pool.clone(), Limit::default()).await;
    let mut all = Vec::new();
    for world in [&world, &other] {
        for added_by in [None, Some(SHOP), Some(STOCK)] {
            let first = add(world, added_by, "order-17").await;
            assert_eq!(add(world, added_by, "order-17").await, first);
            all.push(first);
        }
        // Without an API key, all are one.
        for added_by in ["cli:ann@host", "anonymous", "admin_key", "copywriter"] {
            assert_eq!(add(world, Some(added_by), "order-17").await, all[all.len() - 3]);
        }
        let in_sql = "select task_id from dalsegno.add_task($1, 'copywriter', 'Part one.', idempotency_key => 'order-17')";
        let in_sql = sqlx::query_scalar::<_, Uuid>(in_sql).bind(world.campaign.id);
        assert_eq!(in_sql.fetch_one(&world.pool).await.unwrap(), all[all.len() - 3]);
        // Its successor is the same caller.
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
    let after = [After::Key { key: "order-17".to_owned() }];
    let links = Links { depends_on: &after, ..Links::default() };
    let join = |added_by| New { added_by, links, ..world.ask("Join.") };
    let added = world.add_new(&join(Some(SHOP))).await.unwrap().task.id;
    let waits = tasks::waits_of(&world.pool, &[added]).await.unwrap();
    assert_eq!(waits[&added].depends_on[0].task_id, first);
    for other in [None, Some(STOCK)] {
        let refused = world.add_new(&join(other)).await;
        assert!(matches!(refused, Err(tasks::Error::NoPredecessor(_))), "{refused:?}");
    }
    let by_id = [After::Task(first)];
    let by_id = |only_of| Links { depends_on: &by_id, only_of, ..Links::default() };
    let refused = world.add_new(&New { links: by_id(Some("stock")), ..world.ask("Join.") }).await;
    assert!(matches!(refused, Err(tasks::Error::NoPredecessor(_))), "{refused:?}");
    world.add_new(&New { links: by_id(Some("shop")), ..world.ask("Join.") }).await.unwrap();
}

#[tokio::test]
async fn a_key_that_an_older_version_has_stored_is_that_of_the_caller_that_its_task_names() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    for (n, added_by) in [SHOP, "cli:ann@host"].into_iter().enumerate() {
        let key = format!("order-{n}");
        let (job_id, created) = add_as_before(&mut conn, &world, added_by, &key).await;
        assert!(created);
        let before = tasks::by_job(&world.pool, job_id).await.unwrap().id;
        let other = if added_by == SHOP { None } else { Some(SHOP) };
        assert_ne!(add(&world, other, &key).await, before, "{added_by}");
        assert_eq!(add(&world, Some(added_by), &key).await, before, "{added_by}");
        let other =
            New { idempotency_key: Some(&key), added_by: Some(added_by), ..world.ask("Part two.") };
        let refused = world.add_new(&other).await;
        assert!(matches!(refused, Err(tasks::Error::KeyTaken(_))), "{refused:?}");
        // Also after the older version's own form is gone.
        let gone = "delete from dalsegno.idempotency_keys where key = 'task:' || $1";
        sqlx::query(gone).bind(&key).execute(&world.pool).await.unwrap();
        assert_eq!(add(&world, Some(added_by), &key).await, before, "{added_by}");
    }
}

#[tokio::test]
async fn an_older_version_adds_nothing_twice_that_this_one_has_added() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    let one = world.task(add(&world, Some(SHOP), "one").await).await;
    assert_eq!(add_as_before(&mut conn, &world, SHOP, "one").await, (one.job_id, false));
    let many = [New { idempotency_key: Some("many"), ..world.ask("Part one.") }];
    let mut tx = world.pool.begin().await.unwrap();
    let limits = super::limits();
    let now = crate::app::noon();
    let added = tasks::add_many(&mut tx, &limits, world.campaign.id, &many, now).await.unwrap();
    tx.commit().await.unwrap();
    let many = world.task(added[0].id).await;
    assert_eq!(
        add_as_before(&mut conn, &world, "cli:ann@host", "many").await,
        (many.job_id, false)
    );
}

#[tokio::test]
async fn an_older_version_that_adds_at_the_same_moment_adds_nothing_twice() {
    let world = World::new().await;
    let mut older = world.pool.begin().await.unwrap();
    let (job_id, _) = add_as_before(&mut older, &world, "cli:ann@host", "order-17").await;
    let new = New { idempotency_key: Some("order-17"), instance: "main", ..world.ask("Part one.") };
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    let (newer, ()) = tokio::join!(world.add_new(&new), async {
        eventually("the newer version waits for the older one", async || {
            let n: i64 = sqlx::query_scalar(waiting).fetch_one(&world.pool).await.unwrap();
            (n == 1).then_some(())
        })
        .await;
        older.commit().await.unwrap();
    });
    // It met the older one in the conversation's lane, or at the key.
    if let Ok(added) = &newer {
        panic!("added twice: {added:?}");
    }
    let again = world.add_new(&new).await.unwrap();
    assert_eq!((again.task.job_id, again.created), (job_id, false));
}
