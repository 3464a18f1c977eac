//! Receivers that are down, slow, removed or misleading, and workers that die.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use chrono::TimeDelta;
use dalsegno::domain::{
    audit::Actor,
    webhooks::{self, State},
};
use rustix::process::Signal;

use super::{
    Post,
    receiver::{Answer, Receiver},
};

#[tokio::test]
async fn a_receiver_that_is_down_for_a_while_is_told_under_the_same_id() {
    let mut post = Post::new().await;
    let address = post.receiver.address;
    drop(post.receiver);
    // Its port is free when its server has stopped.
    crate::app::eventually("nobody listens", async || {
        tokio::net::TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
    post.receiver = Receiver::start().await;
    let (_, delivery) = post.end_a_task().await;
    let upkeep = post.ground.upkeep().await;
    let missed = post.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, None));
    let words = missed.last_error.unwrap();
    assert!(words.starts_with("it could not be reached"), "{words}");
    assert!(!words.contains("hooks") && !words.contains("http"), "{words}");
    assert!(post.now().await.failing_since.is_some());
    post.receiver = Receiver::start_at(address).await;
    post.receiver.answer(Answer::Status(503));
    let missed = post.until(delivery.id, "it was tried again", |found| found.attempts == 2).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, Some(503)));
    let wait = "select round(extract(epoch from run_at - now()) / 60)::bigint from dalsegno.jobs where kind = 'deliver_webhook'";
    assert_eq!(post.ground.count(wait).await, 5);
    post.receiver.answer(Answer::Status(200));
    post.make_due().await;
    let delivered = post.delivered(delivery.id).await;
    assert_eq!((delivered.attempts, delivered.last_error), (3, None));
    assert_eq!(post.now().await.failing_since, None);
    let received = post.receiver.received();
    assert_eq!(received.len(), 2);
    for one in received {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert!(one.is_signed_with(&post.secret));
    }
    upkeep.stop().await;
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_longer_wait_gets_it() {
    let post = Post::new().await;
    post.receiver.answer(Answer::Busy(1800));
    let (_, delivery) = post.end_a_task().await;
    let upkeep = post.ground.upkeep().await;
    let missed = post.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, Some(429)));
    let wait = "select round(extract(epoch from run_at - now()) / 60)::bigint from dalsegno.jobs where kind = 'deliver_webhook'";
    let minutes = post.ground.count(wait).await;
    assert!((30..=33).contains(&minutes), "{minutes} minutes, and not the usual five seconds");
    upkeep.stop().await;
}

#[tokio::test]
async fn who_answers_that_it_is_gone_is_told_nothing_more_until_it_is_enabled_and_replayed() {
    let post = Post::new().await;
    post.receiver.answer(Answer::Status(410));
    let upkeep = post.ground.upkeep().await;
    let (_, first) = post.end_a_task().await;
    let failed = post.until(first.id, "it is given up", |found| found.state == State::Failed).await;
    assert_eq!((failed.attempts, failed.last_status), (1, Some(410)));
    let webhook = post.now().await;
    assert_eq!(webhook.disabled_because.as_deref(), Some("it answered 410 Gone"));
    let (_, held) = post.end_a_task().await;
    assert_eq!((held.state, held.job_id), (State::Held, None));

    let mut conn = post.ground.pool.acquire().await.unwrap();
    let refused = webhooks::replay(&mut conn, first.id, chrono::Utc::now()).await;
    assert!(matches!(refused, Err(webhooks::Error::Disabled(_))), "{refused:?}");
    post.receiver.answer(Answer::Status(200));
    webhooks::enable(&mut conn, webhook.id).await.unwrap();
    let (since, who, pool) = (first.created_at, Actor::anonymous(None), &post.ground.pool);
    let replay = async || {
        webhooks::replay_since(pool, &who, webhook.id, since, chrono::Utc::now()).await.unwrap()
    };
    assert_eq!(replay().await, 2);
    for id in [first.id, held.id] {
        post.delivered(id).await;
    }
    let ids: Vec<_> =
        post.receiver.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.iter().filter(|id| **id == first.id.to_string()).count(), 2);
    assert_eq!(ids.iter().filter(|id| **id == held.id.to_string()).count(), 1);
    // A delivered delivery is sent again only on request by its id.
    assert_eq!(replay().await, 0);
    let mut tx = pool.begin().await.unwrap();
    webhooks::replay(&mut tx, first.id, chrono::Utc::now()).await.unwrap();
    tx.commit().await.unwrap();
    post.receiver.has_received(4).await;
    post.delivered(first.id).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_webhook_that_fails_for_days_is_disabled_with_a_reason() {
    let post = Post::new().await;
    post.receiver.answer(Answer::Status(500));
    let upkeep = post.ground.upkeep().await;
    let (_, delivery) = post.end_a_task().await;
    post.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    for attempt in 2..=10 {
        assert!(post.now().await.enabled);
        post.ground.advance(TimeDelta::hours(12));
        post.make_due().await;
        post.until(delivery.id, "it was tried again", |found| found.attempts == attempt).await;
    }
    // Its attempts are used up before the days are.
    assert_eq!(post.delivery(delivery.id).await.state, State::Failed);
    assert!(post.now().await.enabled);
    post.ground.advance(TimeDelta::hours(12));
    let (_, next) = post.end_a_task().await;
    post.until(next.id, "it was tried", |found| found.attempts == 1).await;
    let webhook = post.now().await;
    let reason = webhook.disabled_because.unwrap();
    assert!(reason.starts_with("no delivery succeeded since"), "{reason}");
    assert!(reason.ends_with("it answered 500 Internal Server Error"), "{reason}");
    // A delivery that waits for a later attempt is held at that attempt.
    post.make_due().await;
    post.until(next.id, "it is held", |found| found.state == State::Held).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let post = Post::new().await;
    let elsewhere = Receiver::start().await;
    let upkeep = post.ground.upkeep().await;
    for to in [elsewhere.url(), "http://169.254.169.254/latest/meta-data/".to_owned()] {
        post.receiver.answer(Answer::Redirect(to));
        let (_, delivery) = post.end_a_task().await;
        let missed = post.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
        assert_eq!(missed.last_status, Some(302));
        let words = missed.last_error.unwrap();
        assert_eq!(words, "it answered 302 Found; redirects are not followed");
    }
    assert_eq!(elsewhere.received().len(), 0);
    upkeep.stop().await;
}

#[tokio::test]
async fn a_slow_receiver_is_not_waited_for_and_an_endless_answer_is_not_read() {
    let post = Post::with(&[("webhooks.timeout_secs", "1")]).await;
    post.receiver.answer(Answer::Slow(Duration::from_secs(60)));
    let upkeep = post.ground.upkeep().await;
    let (_, slow) = post.end_a_task().await;
    let missed = post.until(slow.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!(missed.last_error.as_deref(), Some("it did not answer within 1 s"));
    post.receiver.answer(Answer::Endless);
    let (_, endless) = post.end_a_task().await;
    post.delivered(endless.id).await;
    upkeep.stop().await;
}

/// The start of a TLS handshake, before the certificate is checked, does not count as a delivery.
#[tokio::test]
async fn a_receiver_without_a_certificate_is_told_nothing() {
    let post = Post::new().await;
    let url = post.receiver.url().replace("http://", "https://");
    let (webhook, _) = super::add(&post.ground, &url).await;
    let (task, _) = {
        let (who, now) = (Actor::anonymous(None), chrono::Utc::now());
        webhooks::remove(&post.ground.pool, &who, post.webhook.id, now).await.unwrap();
        post.end_a_task().await
    };
    let upkeep = post.ground.upkeep().await;
    let made = super::deliveries(&post.ground, Some(&task)).await.remove(0);
    assert_eq!(made.webhook_id, webhook.id);
    let missed = post.until(made.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, None));
    assert_eq!(post.receiver.received().len(), 0);
    upkeep.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_after_sending_is_followed_by_one_that_sends_the_same_again() {
    let post = Post::new().await;
    let (_, delivery) = post.end_a_task().await;
    let mut worker = post.ground.upkeep_process(&[("queue.crash_at", "before_end")]);
    let died = worker.patiently_ended().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", worker.log());
    let first = post.receiver.has_received(1).await.remove(0);
    assert_eq!(post.delivery(delivery.id).await.state, State::Waiting);
    let upkeep = post.ground.upkeep().await;
    let delivered = async {
        loop {
            if post.delivery(delivery.id).await.state == State::Delivered {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(crate::app::SOON, delivered).await.unwrap();
    let second = post.receiver.received().remove(1);
    for one in [&first, &second] {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert!(one.is_signed_with(&post.secret));
    }
    assert_eq!(first.body, second.body);
    upkeep.stop().await;
}
