//! `/v1/webhooks` and `/v1/webhook-deliveries`.

use serde_json::json;
use uuid::Uuid;

use super::{Fixture, client};

#[tokio::test]
async fn a_webhook_is_added_rotated_disabled_and_removed() {
    let fixture = Fixture::new().await;
    let added = fixture.post("/v1/webhooks", &json!({ "url": "https://example.com/hooks" })).await;
    let added = added.expect(201);
    let secret = added["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"), "{added}");
    assert_eq!(added["kinds"], json!(["task.done", "task.failed", "task.cancelled"]));
    let path = format!("/v1/webhooks/{}", added["id"].as_str().unwrap());
    let shown = fixture.get(&path).await;
    assert!(!shown.body.contains("whsec_") && !shown.body.contains("secret"), "{shown:?}");
    assert_eq!(fixture.get("/v1/webhooks").await.expect(200)["items"], json!([shown.json()]));

    let rotated = fixture.post(&format!("{path}/rotate"), &json!({})).await.expect(200);
    assert_ne!(rotated["secret"], added["secret"]);
    assert!(rotated["rotates_until"].is_string(), "{rotated}");
    let long = fixture.post(&format!("{path}/rotate"), &json!({ "overlap_secs": 2_592_001 })).await;
    long.problem(422, "bad_field");

    let test = fixture.post(&format!("{path}/test"), &json!({})).await.expect(202);
    assert_eq!((&test["kind"], &test["state"]), (&json!("webhook.test"), &json!("waiting")));
    let delivery = format!("/v1/webhook-deliveries/{}", test["id"].as_str().unwrap());
    assert_eq!(fixture.get(&delivery).await.expect(200), test);

    let disable = json!({ "reason": "moving" });
    let disabled = fixture.post(&format!("{path}/disable"), &disable).await.expect(200);
    assert_eq!(
        (&disabled["enabled"], &disabled["disabled_because"]),
        (&json!(false), &json!("moving"))
    );
    let refused = fixture.post(&format!("{path}/test"), &json!({})).await;
    assert!(refused.problem(409, "webhook_disabled").contains("webhook enable"));
    fixture.post(&format!("{delivery}/replay"), &json!({})).await.problem(409, "webhook_disabled");
    assert_eq!(
        fixture.post(&format!("{path}/enable"), &json!({})).await.expect(200)["enabled"],
        true
    );
    let replayed = fixture.post(&format!("{delivery}/replay"), &json!({})).await.expect(202);
    assert_ne!(replayed["job_id"], test["job_id"]);
    let since = json!({ "since": "2026-11-01T00:00:00Z" });
    let since = fixture.post(&format!("{path}/replay"), &since).await.expect(202);
    assert_eq!(since["replayed"], 1);

    let gone = client::send(fixture.app.address, "DELETE", &path, &[], "").await;
    assert_eq!(gone.status, 204, "{gone:?}");
    fixture.get(&path).await.problem(404, "unknown_webhook");
    fixture.get(&delivery).await.problem(404, "unknown_delivery");
}

#[tokio::test]
async fn deliveries_are_paged_newest_first() {
    let fixture = Fixture::new().await;
    let added = fixture.post("/v1/webhooks", &json!({ "url": "https://example.com/" })).await;
    let id = added.expect(201)["id"].as_str().unwrap().to_owned();
    let mut sent = Vec::new();
    for _ in 0..3 {
        let one = fixture.post(&format!("/v1/webhooks/{id}/test"), &json!({})).await.expect(202);
        sent.insert(0, one["id"].clone());
    }
    let first = fixture.get(&format!("/v1/webhook-deliveries?webhook_id={id}&limit=2")).await;
    let first = first.expect(200);
    assert_eq!(json!([first["items"][0]["id"], first["items"][1]["id"]]), json!(sent[..2]));
    let next = first["next"].as_str().unwrap();
    let second = fixture.get(&format!("/v1/webhook-deliveries?limit=2&cursor={next}")).await;
    let second = second.expect(200);
    assert_eq!((&second["items"][0]["id"], &second["next"]), (&sent[2], &json!(null)));
    let failed = fixture.get("/v1/webhook-deliveries?state=failed").await.expect(200);
    assert_eq!(failed["items"], json!([]));
}

#[tokio::test]
async fn a_private_webhook_address_is_refused_with_a_reason() {
    let fixture = Fixture::new().await;
    let add = async |url: &str| fixture.post("/v1/webhooks", &json!({ "url": url })).await;
    for url in [
        "http://example.com/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://u:p@example.com/",
        "x",
    ] {
        let words = add(url).await.problem(422, "bad_webhook_url");
        assert!(!words.contains("u:p"), "{words}");
    }
    let unknown = json!({ "url": "https://example.com/", "campaign_id": Uuid::nil() });
    fixture.post("/v1/webhooks", &unknown).await.problem(404, "unknown_campaign");
    let kind = json!({ "url": "https://example.com/", "kinds": ["task.started"] });
    fixture.post("/v1/webhooks", &kind).await.problem(422, "bad_field");
    let nothing = format!("/v1/webhooks/{}/rotate", Uuid::nil());
    fixture.post(&nothing, &json!({})).await.problem(404, "unknown_webhook");
}
