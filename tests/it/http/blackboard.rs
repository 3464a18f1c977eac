//! `/v1/campaigns/{id}/blackboard`.

use serde_json::{Value, json};

use super::{Fixture, client};

impl Fixture {
    fn blackboard(&self) -> String {
        format!("/v1/campaigns/{}/blackboard", self.world.campaign.id)
    }

    async fn put(&self, path: &str, body: &Value) -> client::Reply {
        client::send(self.app.address, "PUT", path, &[], &body.to_string()).await
    }
}

#[tokio::test]
async fn a_document_is_replaced_at_a_known_version_and_patched_at_any() {
    let fixture = Fixture::new().await;
    let path = fixture.blackboard();
    let empty = fixture.get(&path).await.expect(200);
    assert_eq!((&empty["version"], &empty["document"]), (&json!(0), &json!({})));

    let first = json!({ "document": { "plan": { "parts": 10 } }, "expected_version": 0 });
    let set = fixture.put(&path, &first).await.expect(200);
    assert_eq!((&set["version"], &set["changed"]), (&json!(1), &json!(true)));
    let words = fixture.put(&path, &first).await.problem(409, "blackboard_changed");
    assert!(words.contains("is at version 1, not at 0"), "{words}");
    let unsaid = fixture.put(&path, &json!({ "document": {} })).await.problem(422, "bad_field");
    assert!(unsaid.contains("expected_version"), "{unsaid}");

    let patch = json!({ "patch": { "plan": { "parts": null, "draft": true } } });
    let patched = fixture.patch(&path, &patch).await.expect(200);
    assert_eq!(patched["document"], json!({ "plan": { "draft": true } }));
    let late = json!({ "patch": { "x": 1 }, "expected_version": 1 });
    fixture.patch(&path, &late).await.problem(409, "blackboard_changed");
    let again = fixture.patch(&path, &patch).await.expect(200);
    assert_eq!((&again["version"], &again["changed"]), (&json!(2), &json!(false)));

    let version = async |version: i64| fixture.get(&format!("{path}?version={version}")).await;
    assert_eq!(version(0).await.expect(200)["document"], json!({}));
    assert_eq!(version(1).await.expect(200)["document"], first["document"]);
    version(3).await.problem(404, "unknown_version");

    let history = fixture.get(&format!("{path}/history?limit=1")).await.expect(200);
    let line = &history["items"][0];
    assert_eq!(
        (&line["version"], &line["kind"], &line["patch"]),
        (&json!(2), &json!("patch"), &patch["patch"])
    );
    assert_eq!(line["paths"], json!(["/plan/parts", "/plan/draft"]));
    let rest = format!("{path}/history?cursor={}", history["next"].as_str().unwrap());
    let rest = fixture.get(&rest).await.expect(200);
    assert_eq!((&rest["items"][0]["version"], &rest["next"]), (&json!(1), &Value::Null));
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_invalid_blackboard_patch_is_refused_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let path = fixture.blackboard();
    let deep = (0..40).fold(json!(1), |inner, _| json!({ "a": inner }));
    for (status, code, patch) in [
        (422, "no_object", json!([1])),
        (422, "no_object", json!("text")),
        (422, "bad_blackboard_key", json!({ "": 1 })),
        (422, "nul_in_text", json!({ "a": "\u{0}" })),
        (413, "blackboard_too_large", json!({ "a": "x".repeat(256 * 1024) })),
        (413, "blackboard_too_large", deep),
    ] {
        fixture.patch(&path, &json!({ "patch": patch })).await.problem(status, code);
    }
    // Each half is short enough, but both together are not.
    let half = |key: &str| json!({ "patch": { key: "x".repeat(200 * 1024) } });
    fixture.patch(&path, &half("a")).await.expect(200);
    fixture.patch(&path, &half("b")).await.problem(413, "blackboard_too_large");
    let now = fixture.get(&path).await.expect(200);
    assert_eq!((&now["version"], &now["document"]["b"]), (&json!(1), &Value::Null));

    let close = format!("/v1/campaigns/{}/close", fixture.world.campaign.id);
    fixture.post(&close, &json!({})).await.expect(200);
    fixture.patch(&path, &json!({ "patch": { "a": 1 } })).await.problem(409, "campaign_closed");
    let unknown = "/v1/campaigns/00000000-0000-7000-8000-000000000000/blackboard";
    fixture.get(unknown).await.problem(404, "unknown_campaign");
    fixture.patch(unknown, &json!({ "patch": {} })).await.problem(404, "unknown_campaign");
}
