//! Deliveries that an operator requests from a worker.

use dalsegno::{
    domain::{audit::Actor, webhooks},
    queue::admin,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::Post;
use crate::app::eventually;

#[tokio::test]
async fn a_replay_finds_a_delivery_without_a_job() {
    let post = Post::new().await;
    let (_, lost) = post.end_a_task().await;
    let (_, waiting) = post.end_a_task().await;
    let pool = &post.ground.pool;
    admin::cancel_job(pool, lost.job_id.unwrap(), "by mistake").await.unwrap();
    let (id, since) = (post.webhook.id, lost.created_at);
    let who = Actor::anonymous(None);
    let n = webhooks::replay_since(pool, &who, id, since, chrono::Utc::now()).await.unwrap();
    assert_eq!(n, 1);
    assert_eq!(post.delivery(waiting.id).await.job_id, waiting.job_id);
    let upkeep = post.ground.upkeep().await;
    post.delivered(lost.id).await;
    post.delivered(waiting.id).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_test_delivery_is_sent_and_signed_like_any_other() {
    let post = Post::new().await;
    let upkeep = post.ground.upkeep().await;
    let mut tx = post.ground.pool.begin().await.unwrap();
    let sent = webhooks::send_test(&mut tx, post.webhook.id, chrono::Utc::now()).await.unwrap();
    tx.commit().await.unwrap();
    post.delivered(sent.id).await;
    let one = post.receiver.received().remove(0);
    assert!(one.is_signed_with(&post.secret));
    assert_eq!(one.json()["type"], "webhook.test");
    assert_eq!(one.json()["data"]["webhook_id"], post.webhook.id.to_string());
    upkeep.stop().await;
}

/// Inserts this many held deliveries. Returns their ids in order.
async fn many_held(pool: &PgPool, webhook_id: Uuid, n: i32) -> Vec<Uuid> {
    let held = "insert into dalsegno.webhook_deliveries (id, webhook_id, created_at, kind, state, body)
                select dalsegno.time_ordered_uuid(now() + make_interval(secs => i)), $1, now(), 'task.done', 'held', '{}'
                  from generate_series(1, $2) as i returning id";
    let mut ids: Vec<Uuid> =
        sqlx::query_scalar(held).bind(webhook_id).bind(n).fetch_all(pool).await.unwrap();
    ids.sort();
    ids
}

async fn n_of(pool: &PgPool, webhook_id: Uuid, condition: &str) -> i64 {
    let sql = format!(
        "select count(*) from dalsegno.webhook_deliveries where webhook_id = $1 and {condition}"
    );
    let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(webhook_id);
    count.fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn many_deliveries_are_replayed_and_removed_in_short_transactions() {
    let post = Post::new().await;
    let (pool, id) = (&post.ground.pool, post.webhook.id);
    let who = Actor::anonymous(None);
    let ids = many_held(pool, id, 1_300).await;
    // Another transaction locks the last delivery. The deliveries before it are committed meanwhile, and visible to
    // all.
    let mut holding = pool.begin().await.unwrap();
    let hold = "select from dalsegno.webhook_deliveries where id = $1 for update";
    sqlx::query(hold).bind(ids[1_299]).execute(&mut *holding).await.unwrap();
    let since = chrono::DateTime::UNIX_EPOCH;
    let (task_pool, task_who) = (pool.clone(), who.clone());
    let replayed = tokio::spawn(async move {
        webhooks::replay_since(&task_pool, &task_who, id, since, chrono::Utc::now()).await
    });
    eventually("the first pages wait for a worker", async || {
        (n_of(pool, id, "state = 'waiting'").await == 1_000).then_some(())
    })
    .await;
    holding.rollback().await.unwrap();
    assert_eq!(replayed.await.unwrap().unwrap(), 1_300);
    assert_eq!(n_of(pool, id, "state = 'waiting'").await, 1_300);
    let lines = "select coalesce(sum((data ->> 'replayed')::bigint), 0)::bigint from dalsegno.audit where action = 'webhook.replay'";
    assert_eq!(sqlx::query_scalar::<_, i64>(lines).fetch_one(pool).await.unwrap(), 1_300);

    let mut holding = pool.begin().await.unwrap();
    sqlx::query(hold).bind(ids[700]).execute(&mut *holding).await.unwrap();
    let (task_pool, task_who) = (pool.clone(), who.clone());
    let removed = tokio::spawn(async move {
        webhooks::remove(&task_pool, &task_who, id, chrono::Utc::now()).await
    });
    eventually("some deliveries are removed", async || {
        (n_of(pool, id, "true").await < 1_300).then_some(())
    })
    .await;
    assert!(!post.now().await.enabled, "nothing more is sent meanwhile");
    holding.rollback().await.unwrap();
    removed.await.unwrap().unwrap();
    assert_eq!(n_of(pool, id, "true").await, 0);
    assert!(matches!(
        webhooks::get(pool, id).await,
        Err(webhooks::Error::Unknown(unknown)) if unknown == id
    ));
    let again = webhooks::remove(pool, &who, id, chrono::Utc::now()).await;
    assert!(matches!(again, Err(webhooks::Error::Unknown(_))), "{again:?}");
}
