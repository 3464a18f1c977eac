//! `dalsegno webhook`.

use serde_json::Value;

use super::{Fixture, text};
use crate::webhooks::receiver::Receiver;

#[tokio::test]
async fn webhooks_are_added_listed_rotated_tested_and_removed() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = [
        "webhook",
        "add",
        "https://example.com/hooks",
        "--kind",
        "task.done",
        "--kind",
        "task.failed",
        "--campaign",
        &campaign,
    ];
    let added = fixture.json(&add).await;
    let (id, secret) = (text(&added["id"]), text(&added["secret"]));
    assert_eq!(added["campaign_id"], campaign);
    let listed = fixture.run(&["webhook", "ls"]).await;
    assert!(listed.stdout.contains("https://example.com/hooks"), "{listed:?}");
    assert!(listed.stdout.contains("task.done,task.failed"), "{listed:?}");
    assert!(!listed.has("whsec_"), "{listed:?}");
    let rotated = fixture.run(&["webhook", "rotate", id, "--overlap", "2h"]).await;
    assert!(rotated.has("the old secret also signs until 20"), "{rotated:?}");
    assert!(rotated.stdout.contains("whsec_") && !rotated.stdout.contains(secret), "{rotated:?}");

    let sent = fixture.json(&["webhook", "test", id]).await;
    let delivery = text(&sent["id"]);
    let deliveries = fixture.run(&["webhook", "deliveries", "--webhook", id]).await;
    let ending = &delivery[24..];
    assert!(deliveries.stdout.contains(ending), "{deliveries:?}");
    let failed = fixture.json(&["webhook", "deliveries", "--failed"]).await;
    assert_eq!(failed, serde_json::json!([]));
    let replayed = fixture.run(&["webhook", "replay", ending]).await;
    assert!(replayed.stdout.contains("webhook deliveries"), "{replayed:?}");
    let since = ["webhook", "replay", "--webhook", id, "--since", "2026-01-01T00:00:00Z"];
    assert!(fixture.run(&since).await.stdout.contains("1 delivery is sent again"));
    assert_eq!(fixture.run(&["webhook", "replay"]).await.code, 2);
    let without = fixture.run(&["webhook", "replay", "--since", "2026-01-01T00:00:00Z"]).await;
    assert!(without.code == 2 && without.has("`dalsegno webhook ls` lists the ids"), "{without:?}");

    let fail = "update dalsegno.webhooks set failing_since = now()";
    sqlx::query(fail).execute(&fixture.world.pool).await.unwrap();
    let disabled = fixture.run(&["webhook", "disable", id, "--reason", "moving"]).await;
    assert_eq!(disabled.code, 0, "{disabled:?}");
    assert!(fixture.run(&["webhook", "ls"]).await.stdout.contains("disabled: moving"));
    let refused = fixture.run(&["webhook", "test", id]).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("webhook enable"), "{refused:?}");
    // The doctor reports failing webhooks, and ignores those disabled by hand.
    let doctor = async || fixture.run(&["doctor"]).await;
    assert!(doctor().await.has("none of 1 webhook fails"));
    sqlx::query(fail).execute(&fixture.world.pool).await.unwrap();
    let output = doctor().await;
    assert!(output.has(&format!("dalsegno webhook enable {id}")), "{output:?}");
    assert!(fixture.run(&["webhook", "enable", id]).await.stdout.contains("is enabled"));
    assert!(fixture.run(&["webhook", "rm", id]).await.stdout.contains("is removed"));
    assert_eq!(fixture.run(&["webhook", "rm", id]).await.code, 3);
    let inside = fixture.run(&["webhook", "add", "https://169.254.169.254/"]).await;
    assert_eq!(inside.code, 2, "{inside:?}");
    assert!(inside.stderr.contains("webhooks.allow_private"), "{inside:?}");
}

#[tokio::test]
async fn a_local_receiver_gets_the_signed_message_of_a_delivery() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::start().await;
    let campaign = fixture.campaign();
    let add = ["webhook", "add", "https://example.com/hooks", "--campaign", &campaign];
    fixture.json(&add).await;
    let task = fixture.add("Part one.", &[]).await;
    fixture.add("Part two.", &[]).await;
    let cancelled = fixture.run(&["task", "cancel", text(&task["id"])]).await;
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let url = receiver.url();
    let listen = ["webhook", "listen", &url, "--after", "0", "--limit", "1", "--secret", secret];
    let output = fixture.run(&listen).await;
    assert!(output.code == 0 && output.stdout.contains("answered 204"), "{output:?}");
    assert!(output.stderr.contains("signed with the given secret"), "{output:?}");
    assert!(!output.stderr.contains(secret), "{output:?}");
    let received = receiver.has_received(1).await;
    assert!(received.len() == 1 && received[0].is_signed_with(secret), "{received:?}");
    let body = "select body from dalsegno.webhook_deliveries";
    let body: String = sqlx::query_scalar(body).fetch_one(&fixture.world.pool).await.unwrap();
    assert_eq!(received[0].body, body);

    // The end of a last turn.
    let failed = fixture.add("Part three.", &[]).await;
    let end = "with ended as (
                 update dalsegno.tasks set state = 'failed', error = 'refused', ended_at = now() where id = $1::uuid returning id, campaign_id)
               insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
               select now(), campaign_id, id, 'turn.failed', '{\"turn\": 1, \"error\": \"refused\", \"again\": false, \"rejected\": false}' from ended";
    let end = sqlx::query(end).bind(text(&failed["id"]));
    end.execute(&fixture.world.pool).await.unwrap();
    let kind = ["--kind", "task.failed"];
    let output = fixture.run(&[&listen[..7], &kind].concat()).await;
    assert!(output.code == 0 && output.stdout.contains("task.failed"), "{output:?}");
    assert!(output.stderr.contains("signed with the secret whsec_"), "{output:?}");

    let done = ["--kind", "task.done", "--timeout", "1s"];
    let output = fixture.run(&[&listen[..5], &done].concat()).await;
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:?}");
    let gone = ["webhook", "listen", "http://127.0.0.1:1/", "--after", "0", "--limit", "1"];
    let output = fixture.json(&gone).await;
    assert!(output["status"].is_null() && output["kind"] == "task.cancelled", "{output}");
    let wrong = fixture.run(&["webhook", "listen", &url, "--secret", "s3cret"]).await;
    assert!(wrong.code == 2 && wrong.stderr.contains("`whsec_`"), "{wrong:?}");
}

#[tokio::test]
async fn a_local_receiver_gets_the_warning_of_a_budget_as_a_delivery_has_it() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::start().await;
    let campaign = fixture.campaign();
    let add = ["webhook", "add", "https://example.com/hooks", "--kind", "budget.warning"];
    fixture.json(&add).await;
    let budget = ["campaign", "budget", &campaign, "--tokens", "900", "--warn-tokens", "5"];
    fixture.json(&budget).await;
    let task = fixture.add("Part one.", &[]).await;
    // The end of a task is not wanted below.
    let cancelled = fixture.run(&["task", "cancel", text(&task["id"])]).await;
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let spend =
        "update dalsegno.campaign_budgets set spent_tokens = 7 where campaign_id = $1::uuid";
    sqlx::query(spend).bind(&campaign).execute(&fixture.world.pool).await.unwrap();
    let warn = "select dalsegno.warn_of_budget('campaign', $1, $1::uuid, null, now())";
    sqlx::query(warn).bind(&campaign).execute(&fixture.world.pool).await.unwrap();
    let url = receiver.url();
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let listen = ["webhook", "listen", &url, "--after", "0", "--secret", secret];
    let warnings = ["--kind", "budget.warning", "--limit", "1", "-o", "json"];
    let sent = fixture.run(&[&listen[..], &warnings].concat()).await;
    assert_eq!(sent.code, 0, "{sent:?}");
    let sent: Value = serde_json::from_str(&sent.stdout).unwrap();
    assert_eq!((&sent["kind"], &sent["task_id"]), (&"budget.warning".into(), &Value::Null));
    let received = receiver.has_received(1).await;
    assert!(received.len() == 1 && received[0].is_signed_with(secret), "{received:?}");
    let body = "select body from dalsegno.webhook_deliveries where kind = 'budget.warning'";
    let body: String = sqlx::query_scalar(body).fetch_one(&fixture.world.pool).await.unwrap();
    assert_eq!(received[0].body, body);

    // As for webhooks, the default is the ends of tasks.
    let ends = fixture.run(&[&listen[..], &["--timeout", "1s"]].concat()).await;
    assert_eq!((ends.code, ends.stdout.lines().count()), (0, 1), "{ends:?}");
    assert!(ends.stdout.contains("task.cancelled"), "{ends:?}");
}
