//! Receivers that are down, slow, removed or misleading, and workers that die.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use chrono::TimeDelta;
use dalsegno::domain::{
    audit::Actor,
    webhooks::{self, State},
};
use rustix::process::Signal;

use super::{
    WebhookSetup,
    receiver::{Answer, Receiver},
};

#[tokio::test]
async fn a_receiver_that_was_down_gets_the_delivery_under_the_same_id() {
    let mut setup = WebhookSetup::new().await;
    let address = setup.receiver.address;
    drop(setup.receiver);
    // Its port is free when its server has stopped.
    crate::app::eventually("the receiver stops listening", async || {
        tokio::net::TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
    setup.receiver = Receiver::start().await;
    let (_, delivery) = setup.end_a_task().await;
    let upkeep = setup.fixture.upkeep().await;
    let missed = setup.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, None));
    let words = missed.last_error.unwrap();
    assert!(words.starts_with("it could not be reached"), "{words}");
    assert!(!words.contains("hooks") && !words.contains("http"), "{words}");
    assert!(setup.now().await.failing_since.is_some());
    setup.receiver = Receiver::start_at(address).await;
    setup.receiver.answer(Answer::Status(503));
    let missed = setup.until(delivery.id, "it was tried again", |found| found.attempts == 2).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, Some(503)));
    let wait = "select round(extract(epoch from run_at - now()) / 60)::bigint from dalsegno.jobs where kind = 'deliver_webhook'";
    assert_eq!(setup.fixture.count(wait).await, 5);
    setup.receiver.answer(Answer::Status(200));
    setup.make_due().await;
    let delivered = setup.delivered(delivery.id).await;
    assert_eq!((delivered.attempts, delivered.last_error), (3, None));
    assert_eq!(setup.now().await.failing_since, None);
    let received = setup.receiver.received();
    assert_eq!(received.len(), 2);
    for one in received {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert!(one.is_signed_with(&setup.secret));
    }
    upkeep.stop().await;
}

#[tokio::test]
async fn a_receiver_can_ask_for_a_longer_wait() {
    let setup = WebhookSetup::new().await;
    setup.receiver.answer(Answer::Busy(1800));
    let (_, delivery) = setup.end_a_task().await;
    let upkeep = setup.fixture.upkeep().await;
    let missed = setup.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, Some(429)));
    let wait = "select round(extract(epoch from run_at - now()) / 60)::bigint from dalsegno.jobs where kind = 'deliver_webhook'";
    let minutes = setup.fixture.count(wait).await;
    assert!((30..=33).contains(&minutes), "the wait is {minutes} minutes");
    upkeep.stop().await;
}

#[tokio::test]
async fn a_receiver_that_answers_410_gets_nothing_until_it_is_enabled_and_replayed() {
    let setup = WebhookSetup::new().await;
    setup.receiver.answer(Answer::Status(410));
    let upkeep = setup.fixture.upkeep().await;
    let (_, first) = setup.end_a_task().await;
    let failed = setup
        .until(first.id, "the delivery has failed", |found| found.state == State::Failed)
        .await;
    assert_eq!((failed.attempts, failed.last_status), (1, Some(410)));
    let webhook = setup.now().await;
    assert_eq!(webhook.disabled_because.as_deref(), Some("it answered 410 Gone"));
    let (_, held) = setup.end_a_task().await;
    assert_eq!((held.state, held.job_id), (State::Held, None));

    let mut conn = setup.fixture.pool.acquire().await.unwrap();
    let refused = webhooks::replay(&mut conn, first.id, chrono::Utc::now()).await;
    assert!(matches!(refused, Err(webhooks::Error::Disabled(_))), "{refused:?}");
    setup.receiver.answer(Answer::Status(200));
    webhooks::enable(&mut conn, webhook.id).await.unwrap();
    let (since, who, pool) = (first.created_at, Actor::anonymous(None), &setup.fixture.pool);
    let replay = async || {
        webhooks::replay_since(pool, &who, webhook.id, since, chrono::Utc::now()).await.unwrap()
    };
    assert_eq!(replay().await, 2);
    for id in [first.id, held.id] {
        setup.delivered(id).await;
    }
    let ids: Vec<_> =
        setup.receiver.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.iter().filter(|id| **id == first.id.to_string()).count(), 2);
    assert_eq!(ids.iter().filter(|id| **id == held.id.to_string()).count(), 1);
    // A delivered delivery is sent again only on request by its id.
    assert_eq!(replay().await, 0);
    let mut tx = pool.begin().await.unwrap();
    webhooks::replay(&mut tx, first.id, chrono::Utc::now()).await.unwrap();
    tx.commit().await.unwrap();
    setup.receiver.has_received(4).await;
    setup.delivered(first.id).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_webhook_that_fails_for_days_is_disabled_with_a_reason() {
    let setup = WebhookSetup::new().await;
    setup.receiver.answer(Answer::Status(500));
    let upkeep = setup.fixture.upkeep().await;
    let (_, delivery) = setup.end_a_task().await;
    setup.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
    for attempt in 2..=10 {
        assert!(setup.now().await.enabled);
        setup.fixture.advance(TimeDelta::hours(12));
        setup.make_due().await;
        setup.until(delivery.id, "it was tried again", |found| found.attempts == attempt).await;
    }
    // Its attempts are used up before the days are.
    assert_eq!(setup.delivery(delivery.id).await.state, State::Failed);
    assert!(setup.now().await.enabled);
    setup.fixture.advance(TimeDelta::hours(12));
    let (_, next) = setup.end_a_task().await;
    setup.until(next.id, "it was tried", |found| found.attempts == 1).await;
    let webhook = setup.now().await;
    let reason = webhook.disabled_because.unwrap();
    assert!(reason.starts_with("no delivery succeeded since"), "{reason}");
    assert!(reason.ends_with("it answered 500 Internal Server Error"), "{reason}");
    // A delivery that waits for a later attempt is held at that attempt.
    setup.make_due().await;
    setup.until(next.id, "it is held", |found| found.state == State::Held).await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let setup = WebhookSetup::new().await;
    let elsewhere = Receiver::start().await;
    let upkeep = setup.fixture.upkeep().await;
    for to in [elsewhere.url(), "http://169.254.169.254/latest/meta-data/".to_owned()] {
        setup.receiver.answer(Answer::Redirect(to));
        let (_, delivery) = setup.end_a_task().await;
        let missed = setup.until(delivery.id, "it was tried", |found| found.attempts == 1).await;
        assert_eq!(missed.last_status, Some(302));
        let words = missed.last_error.unwrap();
        assert_eq!(words, "it answered 302 Found; redirects are not followed");
    }
    assert_eq!(elsewhere.received().len(), 0);
    upkeep.stop().await;
}

#[tokio::test]
async fn a_slow_receiver_times_out_and_an_endless_answer_is_not_read() {
    let setup = WebhookSetup::with(&[("webhooks.timeout_secs", "1")]).await;
    setup.receiver.answer(Answer::Slow(Duration::from_secs(60)));
    let upkeep = setup.fixture.upkeep().await;
    let (_, slow) = setup.end_a_task().await;
    let missed = setup.until(slow.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!(missed.last_error.as_deref(), Some("it did not answer within 1 s"));
    setup.receiver.answer(Answer::Endless);
    let (_, endless) = setup.end_a_task().await;
    setup.delivered(endless.id).await;
    upkeep.stop().await;
}

/// The start of a TLS handshake, before the certificate is checked, does not count as a delivery.
#[tokio::test]
async fn a_receiver_without_a_valid_certificate_gets_nothing() {
    let setup = WebhookSetup::new().await;
    let url = setup.receiver.url().replace("http://", "https://");
    let (webhook, _) = super::add(&setup.fixture, &url).await;
    let (task, _) = {
        let (who, now) = (Actor::anonymous(None), chrono::Utc::now());
        webhooks::remove(&setup.fixture.pool, &who, setup.webhook.id, now).await.unwrap();
        setup.end_a_task().await
    };
    let upkeep = setup.fixture.upkeep().await;
    let made = super::deliveries(&setup.fixture, Some(&task)).await.remove(0);
    assert_eq!(made.webhook_id, webhook.id);
    let missed = setup.until(made.id, "it was tried", |found| found.attempts == 1).await;
    assert_eq!((missed.state, missed.last_status), (State::Waiting, None));
    assert_eq!(setup.receiver.received().len(), 0);
    upkeep.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_after_sending_is_followed_by_one_that_sends_the_same_again() {
    let setup = WebhookSetup::new().await;
    let (_, delivery) = setup.end_a_task().await;
    let mut worker = setup.fixture.upkeep_process(&[("queue.crash_at", "before_end")]);
    let died = worker.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", worker.log());
    let first = setup.receiver.has_received(1).await.remove(0);
    assert_eq!(setup.delivery(delivery.id).await.state, State::Waiting);
    let upkeep = setup.fixture.upkeep().await;
    let delivered = async {
        loop {
            if setup.delivery(delivery.id).await.state == State::Delivered {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(crate::app::SOON, delivered).await.unwrap();
    let second = setup.receiver.received().remove(1);
    for one in [&first, &second] {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert!(one.is_signed_with(&setup.secret));
    }
    assert_eq!(first.body, second.body);
    upkeep.stop().await;
}
