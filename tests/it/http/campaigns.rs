//! `/v1/campaigns`, and `/v1/agents`.

use serde_json::json;

use super::Fixture;
use crate::conversations::world::TurnSettings;

#[tokio::test]
async fn a_campaign_is_created_changed_and_closed() {
    let fixture = Fixture::new().await;
    let new = json!({ "name": "Spring", "brief": "Ten parts.", "budget": { "micros": 5_000_000 } });
    let reply = fixture.post("/v1/campaigns", &new).await;
    let created = reply.expect(201);
    let path = format!("/v1/campaigns/{}", created["id"].as_str().unwrap());
    assert!(reply.head.contains(&format!("location: {path}")), "{reply:?}");
    assert_eq!(created["budget"]["limit"], json!({ "micros": 5_000_000, "tokens": null }));
    assert_eq!(fixture.get(&path).await.expect(200), created);

    // An omitted limit stays; null removes one.
    let budget = format!("{path}/budget");
    let limit = async |change| fixture.patch(&budget, &change).await.expect(200)["limit"].clone();
    assert_eq!(limit(json!({ "tokens": 9 })).await, json!({ "micros": 5_000_000, "tokens": 9 }));
    assert_eq!(limit(json!({ "micros": null })).await, json!({ "micros": null, "tokens": 9 }));
    assert_eq!(limit(json!({})).await, json!({ "micros": null, "tokens": 9 }));
    let words = fixture.patch(&budget, &json!({ "tokens": 0 })).await.problem(422, "bad_value");
    assert!(words.contains("a limit in tokens must be more than 0"), "{words}");

    for (verb, status) in [("pause", "paused"), ("resume", "active"), ("close", "closed")] {
        let changed = fixture.post(&format!("{path}/{verb}"), &json!({})).await.expect(200);
        assert_eq!(changed["status"], status);
    }
    let words = fixture.post(&format!("{path}/resume"), &json!({})).await;
    assert!(words.problem(409, "campaign_closed").contains("create a new one"));
    let task = json!({ "agent": "copywriter", "prompt": "x" });
    fixture.post(&format!("{path}/tasks"), &task).await.problem(409, "campaign_closed");
}

#[tokio::test]
async fn a_campaign_shows_its_cost() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let shown =
        fixture.get(&format!("/v1/campaigns/{}", fixture.world.campaign.id)).await.expect(200);
    assert_eq!(shown["usage"][0]["cost_micros"], 500);
    assert_eq!(shown["sessions"][0]["agent"], "copywriter");
    let listed = fixture.get("/v1/campaigns").await.expect(200);
    assert_eq!((&listed["items"][0]["name"], &listed["next"]), (&json!("Harbour"), &json!(null)));
}

#[tokio::test]
async fn the_agents_are_listed_with_their_skills() {
    let fixture = Fixture::new().await;
    let agents = fixture.get("/v1/agents").await.expect(200);
    assert_eq!(agents["items"][0]["name"], "copywriter");
    assert_eq!(agents["items"][0]["skills"], json!(["editorial-style"]));
    assert_eq!(agents["skills"][0]["name"], "editorial-style");
    assert_eq!(agents["problems"], json!([]));
}
