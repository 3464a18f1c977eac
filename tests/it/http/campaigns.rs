//! `/v1/campaigns`, and `/v1/agents`.

use serde_json::json;

use super::Ground;
use crate::conversations::world::Now;

#[tokio::test]
async fn a_campaign_is_created_changed_and_closed() {
    let ground = Ground::new().await;
    let new = json!({ "name": "Spring", "brief": "Ten parts.", "budget": { "micros": 5_000_000 } });
    let reply = ground.post("/v1/campaigns", &new).await;
    let created = reply.expect(201);
    let path = format!("/v1/campaigns/{}", created["id"].as_str().unwrap());
    assert!(reply.head.contains(&format!("location: {path}")), "{reply:?}");
    assert_eq!(created["budget"]["limit"], json!({ "micros": 5_000_000, "tokens": null }));
    assert_eq!(ground.get(&path).await.expect(200), created);

    // A limit that is not named stays; one that is null goes.
    let limit = async |budget| {
        ground.patch(&path, &json!({ "budget": budget })).await.expect(200)["budget"]["limit"]
            .clone()
    };
    assert_eq!(limit(json!({ "tokens": 9 })).await, json!({ "micros": 5_000_000, "tokens": 9 }));
    assert_eq!(limit(json!({ "micros": null })).await, json!({ "micros": null, "tokens": 9 }));

    for status in ["paused", "active", "closed"] {
        let changed = ground.patch(&path, &json!({ "status": status })).await.expect(200);
        assert_eq!(changed["status"], status);
    }
    let words = ground.patch(&path, &json!({ "status": "active" })).await;
    assert!(words.problem(409, "campaign_closed").contains("create a new one"));
    let task = json!({ "agent": "copywriter", "prompt": "x" });
    ground.post(&format!("{path}/tasks"), &task).await.problem(409, "campaign_closed");
}

#[tokio::test]
async fn a_change_that_cannot_be_made_in_full_is_not_made() {
    let ground = Ground::new().await;
    let path = format!("/v1/campaigns/{}", ground.world.campaign.id);
    let change = json!({ "status": "paused", "budget": { "tokens": 0 } });
    let words = ground.patch(&path, &change).await.problem(422, "bad_value");
    assert!(words.contains("a limit in tokens is more than 0"), "{words}");
    assert_eq!(ground.get(&path).await.expect(200)["status"], "active");
}

#[tokio::test]
async fn a_campaign_shows_what_it_has_cost() {
    let ground = Ground::new().await;
    ground.world.turn("Part one.", Now::default()).await;
    let shown =
        ground.get(&format!("/v1/campaigns/{}", ground.world.campaign.id)).await.expect(200);
    assert_eq!(shown["usage"][0]["cost_micros"], 500);
    assert_eq!(shown["sessions"][0]["agent"], "copywriter");
    let listed = ground.get("/v1/campaigns").await.expect(200);
    assert_eq!((&listed["items"][0]["name"], &listed["next"]), (&json!("Harbour"), &json!(null)));
}

#[tokio::test]
async fn the_agents_are_listed_with_their_skills() {
    let ground = Ground::new().await;
    let agents = ground.get("/v1/agents").await.expect(200);
    assert_eq!(agents["items"][0]["name"], "copywriter");
    assert_eq!(agents["items"][0]["skills"], json!(["editorial-style"]));
    assert_eq!(agents["skills"][0]["name"], "editorial-style");
    assert_eq!(agents["problems"], json!([]));
}
