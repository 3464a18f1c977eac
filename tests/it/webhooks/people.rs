//! What an operator asks a worker to send.

use dalsegno::{domain::webhooks, queue::admin};

use super::Post;

#[tokio::test]
async fn a_delivery_that_has_lost_its_job_is_found_by_a_replay() {
    let post = Post::new().await;
    let (_, lost) = post.end_a_task().await;
    let (_, waiting) = post.end_a_task().await;
    let pool = &post.ground.pool;
    admin::cancel_job(pool, lost.job_id.unwrap(), "by mistake").await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let (id, since) = (post.webhook.id, lost.created_at);
    let n = webhooks::replay_since(&mut tx, id, since, chrono::Utc::now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(n, 1);
    assert_eq!(post.delivery(waiting.id).await.job_id, waiting.job_id);
    let upkeep = post.ground.upkeep().await;
    post.delivered(lost.id).await;
    post.delivered(waiting.id).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_test_is_sent_and_signed_like_everything_else() {
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
