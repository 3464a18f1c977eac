//! Every kind of end of a task is delivered once to each webhook that asks for it.

use std::collections::BTreeSet;

use dalsegno::{
    domain::{
        campaigns,
        tasks::{self, State as TaskState},
        webhooks::{self, Kind, New, State},
    },
    queue::admin,
};
use uuid::Uuid;

use super::{WebhookSetup, add_new, deliveries};
use crate::{
    app::{eventually, until_blocked},
    turns::fixture::WRITER,
};

#[tokio::test]
async fn every_end_is_delivered_once_and_signed() {
    let setup = WebhookSetup::new().await;
    let fixture = &setup.fixture;
    fixture.write_agent("editor", &WRITER.replace("writer", "editor"));
    let cancelled = fixture.add_for("writer", "one", "Write.").await;
    let lost = fixture.add_for("writer", "two", "Write.").await;
    let refused = fixture.add_for("editor", "main", "Write.").await;
    let done = fixture.add_for("writer", "three", "Write. [[sim: say The harbour.]]").await;
    let failed = fixture.add_for("writer", "four", "Write. [[sim: error 400]]").await;
    fixture.cancel(&cancelled).await;
    // Its job ends without the task; the sweep for such tasks ends the task.
    admin::cancel_job(&fixture.pool, lost.job_id, "not wanted").await.unwrap();
    fixture.remove_agent("editor");
    let (turns, upkeep) = (fixture.start_worker().await, fixture.upkeep().await);
    let ends = [
        (&cancelled, TaskState::Cancelled),
        (&lost, TaskState::Cancelled),
        (&refused, TaskState::Failed),
        (&done, TaskState::Done),
        (&failed, TaskState::Failed),
    ];
    for (task, state) in ends {
        assert_eq!(fixture.ended(task).await.state, state);
    }
    eventually("everything is delivered", async || {
        let all = deliveries(fixture, None).await;
        all.iter().all(|delivery| delivery.state == State::Delivered).then_some(())
    })
    .await;
    let received = setup.receiver.received();
    let ids: BTreeSet<&str> = received.iter().map(|one| one.header("webhook-id")).collect();
    assert_eq!((received.len(), ids.len()), (5, 5), "{received:?}");
    for (task, state) in ends {
        let task = fixture.task(task).await;
        let made = deliveries(fixture, Some(&task)).await;
        assert_eq!(made.len(), 1, "{made:?}");
        let id = made[0].id.to_string();
        let one = received.iter().find(|one| one.header("webhook-id") == id).unwrap();
        assert!(one.is_signed_with(&setup.secret), "{one:?}");
        assert!(!one.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        assert_eq!(one.header("content-type"), "application/json");
        let body = one.json();
        assert_eq!(body["type"], format!("task.{}", state.as_str()));
        assert_eq!(body["data"]["task_id"], task.id.to_string());
        assert_eq!(body["data"]["campaign_id"], task.campaign_id.to_string());
        assert_eq!(body["data"]["result"].as_str(), task.result.as_deref());
        assert_eq!(body["data"]["error"].as_str(), task.error.as_deref());
        let at: chrono::DateTime<chrono::Utc> =
            body["timestamp"].as_str().unwrap().parse().unwrap();
        assert_eq!(Some(at), task.ended_at);
    }
    // A retried task ends again.
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, cancelled.id, fixture.advance(chrono::TimeDelta::zero())).await.unwrap();
    tx.commit().await.unwrap();
    fixture.done(&cancelled).await;
    setup.receiver.has_received(6).await;
    let kinds = deliveries(fixture, Some(&cancelled)).await.into_iter().map(|one| one.kind);
    assert_eq!(
        kinds.collect::<BTreeSet<_>>(),
        ["task.cancelled", "task.done"].map(str::to_owned).into()
    );
    turns.stop().await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_webhook_gets_only_events_of_its_kinds_and_campaign() {
    let setup = WebhookSetup::new().await;
    let fixture = &setup.fixture;
    let other = campaigns::New {
        name: "Other",
        brief: "",
        client_context: None,
        limit: dalsegno::domain::amount::Limit::default(),
    };
    let mut conn = fixture.pool.acquire().await.unwrap();
    let other = campaigns::create(&mut conn, &other, crate::app::noon()).await.unwrap();
    let url = setup.receiver.url();
    let every = New { url: &url, ..New::default() };
    let done_only = New { kinds: &[Kind::Done], ..every };
    let other_only = New { campaign_id: Some(other.id), ..every };
    let own = New { kinds: &[Kind::Cancelled], campaign_id: Some(fixture.campaign.id), ..every };
    add_new(fixture, &done_only).await;
    add_new(fixture, &other_only).await;
    let (own, _) = add_new(fixture, &own).await;
    let task = fixture.add("Write.").await;
    fixture.cancel(&task).await;
    let told: Vec<Uuid> =
        deliveries(fixture, Some(&task)).await.into_iter().map(|one| one.webhook_id).collect();
    assert_eq!(BTreeSet::from_iter(told), BTreeSet::from([setup.webhook.id, own.id]));
    let nowhere = New { campaign_id: Some(Uuid::nil()), ..every };
    let config = fixture.config().webhooks;
    let refused = webhooks::add(&mut conn, &config, &nowhere, crate::app::noon()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("there is no campaign"), "{refused}");
}

#[tokio::test]
async fn a_long_result_is_cut_with_a_notice() {
    let setup = WebhookSetup::new().await;
    let fixture = &setup.fixture;
    let task = fixture.add("Write.").await;
    // Ends the task as a turn would, without the turn.
    sqlx::query(
        "update dalsegno.tasks set state = 'done', started_at = now(), ended_at = now(), result = repeat('ä', 70000) where id = $1",
    )
    .bind(task.id)
    .execute(&fixture.pool)
    .await
    .unwrap();
    let upkeep = fixture.upkeep().await;
    let body = setup.receiver.has_received(1).await[0].json();
    assert_eq!(body["data"]["result"].as_str().unwrap().chars().count(), 65_536);
    assert_eq!(body["data"]["truncated"], true);
    upkeep.stop().await;
}

/// The removal has locked the webhook. The end waits for it, and then makes no delivery.
#[tokio::test]
async fn a_webhook_removed_during_the_end_of_a_task_is_ignored() {
    let setup = WebhookSetup::new().await;
    let fixture = &setup.fixture;
    let task = fixture.add("Write.").await;
    let mut removal = fixture.pool.begin().await.unwrap();
    // The last statement of a removal.
    let remove = "delete from dalsegno.webhooks where id = $1";
    sqlx::query(remove).bind(setup.webhook.id).execute(&mut *removal).await.unwrap();
    let ended = async {
        fixture.cancel(&task).await;
    };
    let removed = async {
        until_blocked(&fixture.pool).await;
        removal.commit().await.unwrap();
    };
    tokio::join!(ended, removed);
    assert_eq!(fixture.task(&task).await.state, TaskState::Cancelled);
    assert_eq!(deliveries(fixture, None).await, []);
    assert_eq!(fixture.count("select count(*) from dalsegno.jobs").await, 0);
}
