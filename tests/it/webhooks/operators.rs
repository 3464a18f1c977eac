//! Deliveries that an operator requests from a worker.

use dalsegno::{
    domain::{
        audit::Actor,
        webhooks::{self, FailedAttempt, Next, Outcome, State},
    },
    queue::admin,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::WebhookSetup;
use crate::app::eventually;

#[tokio::test]
async fn a_replay_finds_a_delivery_without_a_job() {
    let setup = WebhookSetup::new().await;
    let (_, lost) = setup.end_a_task().await;
    let (_, waiting) = setup.end_a_task().await;
    let pool = &setup.fixture.pool;
    admin::cancel_job(pool, lost.job_id.unwrap(), "by mistake").await.unwrap();
    let (id, since) = (setup.webhook.id, lost.created_at);
    let who = Actor::anonymous(None);
    let n = webhooks::replay_since(pool, &who, id, since, chrono::Utc::now()).await.unwrap();
    assert_eq!(n, 1);
    assert_eq!(setup.delivery(waiting.id).await.job_id, waiting.job_id);
    let upkeep = setup.fixture.upkeep().await;
    setup.delivered(lost.id).await;
    setup.delivered(waiting.id).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_test_delivery_is_sent_and_signed_like_any_other() {
    let setup = WebhookSetup::new().await;
    let upkeep = setup.fixture.upkeep().await;
    let mut tx = setup.fixture.pool.begin().await.unwrap();
    let sent = webhooks::send_test(&mut tx, setup.webhook.id, chrono::Utc::now()).await.unwrap();
    tx.commit().await.unwrap();
    setup.delivered(sent.id).await;
    let one = setup.receiver.received().remove(0);
    assert!(one.is_signed_with(&setup.secret));
    assert_eq!(one.json()["type"], "webhook.test");
    assert_eq!(one.json()["data"]["webhook_id"], setup.webhook.id.to_string());
    upkeep.stop().await;
}

#[tokio::test]
async fn a_delivery_that_arrives_while_it_is_given_up_is_delivered() {
    let setup = WebhookSetup::new().await;
    let (_, sent) = setup.end_a_task().await;
    let (pool, job) = (&setup.fixture.pool, sent.job_id.unwrap());
    let now = chrono::Utc::now();
    let due = webhooks::due(pool, sent.id, job, now).await.unwrap().unwrap();
    let mut conn = pool.acquire().await.unwrap();
    webhooks::give_up(&mut conn, sent.id, job, "no receiver any more", now).await.unwrap();
    let config = &webhooks::Config {
        allow_private: true,
        timeout_secs: 10,
        disable_after_days: 5,
        keep_days: 30,
    };
    let missed = Outcome::Missed(FailedAttempt::unanswered("no answer".to_owned()));
    let next = webhooks::record(&mut conn, config, &due, job, &missed, now).await.unwrap();
    assert_eq!(next, Next::Overtaken);
    let given_up = setup.delivery(sent.id).await;
    assert_eq!(
        (given_up.state, given_up.last_error.as_deref()),
        (State::Failed, Some("given up: no receiver any more"))
    );
    let arrived = Outcome::Delivered { status: 200 };
    let next = webhooks::record(&mut conn, config, &due, job, &arrived, now).await.unwrap();
    assert_eq!((next, setup.delivery(sent.id).await.state), (Next::Ended, State::Delivered));
}

/// Inserts this many held deliveries. Returns their ids in order.
async fn insert_held_deliveries(pool: &PgPool, webhook_id: Uuid, n: i32) -> Vec<Uuid> {
    let held = "insert into dalsegno.webhook_deliveries (id, webhook_id, created_at, kind, state, body)
                select dalsegno.time_ordered_uuid(now() + make_interval(secs => i)), $1, now(), 'task.done', 'held', '{}'
                  from generate_series(1, $2) as i returning id";
    let mut ids: Vec<Uuid> =
        sqlx::query_scalar(held).bind(webhook_id).bind(n).fetch_all(pool).await.unwrap();
    ids.sort();
    ids
}

async fn count_deliveries(pool: &PgPool, webhook_id: Uuid, condition: &str) -> i64 {
    let sql = format!(
        "select count(*) from dalsegno.webhook_deliveries where webhook_id = $1 and {condition}"
    );
    let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(webhook_id);
    count.fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn many_deliveries_are_replayed_and_removed_in_short_transactions() {
    let setup = WebhookSetup::new().await;
    let (pool, id) = (&setup.fixture.pool, setup.webhook.id);
    let who = Actor::anonymous(None);
    let ids = insert_held_deliveries(pool, id, 1_300).await;
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
        (count_deliveries(pool, id, "state = 'waiting'").await == 1_000).then_some(())
    })
    .await;
    holding.rollback().await.unwrap();
    assert_eq!(replayed.await.unwrap().unwrap(), 1_300);
    assert_eq!(count_deliveries(pool, id, "state = 'waiting'").await, 1_300);
    let lines = "select coalesce(sum((data ->> 'replayed')::bigint), 0)::bigint from dalsegno.audit where action = 'webhook.replay'";
    assert_eq!(sqlx::query_scalar::<_, i64>(lines).fetch_one(pool).await.unwrap(), 1_300);

    let mut holding = pool.begin().await.unwrap();
    sqlx::query(hold).bind(ids[700]).execute(&mut *holding).await.unwrap();
    let (task_pool, task_who) = (pool.clone(), who.clone());
    let removed = tokio::spawn(async move {
        webhooks::remove(&task_pool, &task_who, id, chrono::Utc::now()).await
    });
    eventually("some deliveries are removed", async || {
        (count_deliveries(pool, id, "true").await < 1_300).then_some(())
    })
    .await;
    assert!(!setup.now().await.enabled, "nothing more is sent meanwhile");
    holding.rollback().await.unwrap();
    removed.await.unwrap().unwrap();
    assert_eq!(count_deliveries(pool, id, "true").await, 0);
    assert!(matches!(
        webhooks::get(pool, id).await,
        Err(webhooks::Error::Unknown(unknown)) if unknown == id
    ));
    let again = webhooks::remove(pool, &who, id, chrono::Utc::now()).await;
    assert!(matches!(again, Err(webhooks::Error::Unknown(_))), "{again:?}");
}
