//! `dalsegno webhook`.

use super::{Ground, text};

#[tokio::test]
async fn webhooks_are_added_listed_rotated_tried_and_forgotten() {
    let ground = Ground::new().await;
    let campaign = ground.campaign();
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
    let added = ground.json(&add).await;
    let (id, secret) = (text(&added["id"]), text(&added["secret"]));
    assert_eq!(added["campaign_id"], campaign);
    let listed = ground.run(&["webhook", "ls"]).await;
    assert!(listed.stdout.contains("https://example.com/hooks"), "{listed:?}");
    assert!(listed.stdout.contains("task.done,task.failed"), "{listed:?}");
    assert!(!listed.has("whsec_"), "{listed:?}");
    let rotated = ground.run(&["webhook", "rotate", id, "--overlap", "2h"]).await;
    assert!(rotated.has("the old secret also signs until 20"), "{rotated:?}");
    assert!(rotated.stdout.contains("whsec_") && !rotated.stdout.contains(secret), "{rotated:?}");

    let sent = ground.json(&["webhook", "test", id]).await;
    let delivery = text(&sent["id"]);
    let deliveries = ground.run(&["webhook", "deliveries", "--webhook", id]).await;
    let ending = &delivery[24..];
    assert!(deliveries.stdout.contains(ending), "{deliveries:?}");
    let failed = ground.json(&["webhook", "deliveries", "--failed"]).await;
    assert_eq!(failed, serde_json::json!([]));
    let replayed = ground.run(&["webhook", "replay", ending]).await;
    assert!(replayed.stdout.contains("webhook deliveries"), "{replayed:?}");
    let since = ["webhook", "replay", "--webhook", id, "--since", "2026-01-01T00:00:00Z"];
    assert!(ground.run(&since).await.stdout.contains("1 deliveries are sent again"));
    assert_eq!(ground.run(&["webhook", "replay"]).await.code, 2);
    assert_eq!(ground.run(&["webhook", "replay", "--since", "2026-01-01T00:00:00Z"]).await.code, 2);

    let fail = "update dalsegno.webhooks set failing_since = now()";
    sqlx::query(fail).execute(&ground.world.pool).await.unwrap();
    let disabled = ground.run(&["webhook", "disable", id, "--reason", "moving"]).await;
    assert_eq!(disabled.code, 0, "{disabled:?}");
    assert!(ground.run(&["webhook", "ls"]).await.stdout.contains("disabled: moving"));
    let refused = ground.run(&["webhook", "test", id]).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("webhook enable"), "{refused:?}");
    // The doctor reports failing webhooks, and ignores those disabled by hand.
    let doctor = async || ground.run(&["doctor"]).await;
    assert!(doctor().await.has("none of 1 webhooks fails"));
    sqlx::query(fail).execute(&ground.world.pool).await.unwrap();
    let said = doctor().await;
    assert!(said.has(&format!("dalsegno webhook enable {id}")), "{said:?}");
    assert!(ground.run(&["webhook", "enable", id]).await.stdout.contains("is enabled"));
    assert!(ground.run(&["webhook", "rm", id]).await.stdout.contains("is removed"));
    assert_eq!(ground.run(&["webhook", "rm", id]).await.code, 3);
    let inside = ground.run(&["webhook", "add", "https://169.254.169.254/"]).await;
    assert_eq!(inside.code, 2, "{inside:?}");
    assert!(inside.stderr.contains("webhooks.allow_private"), "{inside:?}");
}
