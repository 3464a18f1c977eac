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
async fn each_edit_of_a_campaign_is_a_version_with_its_author() {
    let fixture = Fixture::new().await;
    let new = json!({ "name": "Spring", "brief": "Ten parts.", "client_context": "Warm." });
    let created = fixture.post("/v1/campaigns", &new).await.expect(201);
    assert_eq!(created["version"], 1);
    let path = format!("/v1/campaigns/{}", created["id"].as_str().unwrap());
    let edit = async |change| fixture.patch(&path, &change).await;

    let edited = edit(json!({ "brief": "Nine parts.", "expected_version": 1 })).await.expect(200);
    assert_eq!((&edited["version"], &edited["changed"]), (&json!(2), &json!(true)));
    assert_eq!(edited["client_context"], "Warm.", "a text that is not named stays");
    let stale = edit(json!({ "brief": "Eight parts.", "expected_version": 1 })).await;
    let detail = stale.problem(409, "campaign_changed");
    assert!(detail.contains("is at version 2, not at 1"), "{detail}");
    let same = edit(json!({ "brief": "Nine parts." })).await.expect(200);
    assert_eq!((&same["version"], &same["changed"]), (&json!(2), &json!(false)));
    let removed = edit(json!({ "client_context": null })).await.expect(200);
    assert_eq!((&removed["version"], &removed["client_context"]), (&json!(3), &json!(null)));
    edit(json!({ "brief": "x".repeat(262_145) })).await.problem(413, "text_too_long");

    let listed = fixture.get(&format!("{path}/versions")).await.expect(200)["items"].clone();
    let listed = listed.as_array().unwrap();
    let rows = listed.iter().map(|row| (&row["version"], &row["brief_bytes"]));
    let rows: Vec<_> = rows.map(|(n, bytes)| (n.as_i64().unwrap(), bytes.clone())).collect();
    assert_eq!(rows, [(3, json!(11)), (2, json!(11)), (1, json!(10))]);
    for row in listed {
        assert!(row["changed_by"].is_string() && row["changed_at"].is_string(), "{row}");
    }
    let page = fixture.get(&format!("{path}/versions?limit=1&cursor=3")).await.expect(200);
    assert_eq!((&page["items"][0]["version"], &page["next"]), (&json!(2), &json!("2")));
    let first = fixture.get(&format!("{path}/versions/1")).await.expect(200);
    assert_eq!(
        (&first["brief"], &first["client_context"]),
        (&json!("Ten parts."), &json!("Warm."))
    );
    fixture.get(&format!("{path}/versions/4")).await.problem(404, "unknown_version");
    let diff = fixture.get(&format!("{path}/version-diff?from=1")).await.expect(200);
    assert_eq!((&diff["to"], &diff["brief"][0]["text"]), (&json!(3), &json!("Ten")));
    assert_eq!(diff["client_context"], json!([{ "kind": "removed", "text": "Warm." }]));

    fixture.post(&format!("{path}/close"), &json!({})).await.expect(200);
    edit(json!({ "brief": "Late." })).await.problem(409, "campaign_closed");
    let events = "select count(*) from dalsegno.feed where kind = 'campaign.edited'";
    let n_events: i64 = sqlx::query_scalar(events).fetch_one(&fixture.world.pool).await.unwrap();
    assert_eq!(n_events, 2);
}

/// An older version of the service, and SQL, create campaigns without their first version.
#[tokio::test]
async fn a_campaign_that_was_created_in_sql_has_a_first_version() {
    let fixture = Fixture::new().await;
    let insert = "insert into dalsegno.campaigns (name, brief) values ('Made elsewhere', 'Ten.') returning id";
    let id: uuid::Uuid = sqlx::query_scalar(insert).fetch_one(&fixture.world.pool).await.unwrap();
    let first = fixture.get(&format!("/v1/campaigns/{id}/versions/1")).await.expect(200);
    assert_eq!((&first["brief"], &first["changed_by"]), (&json!("Ten."), &json!(null)));
}

#[tokio::test]
async fn a_campaign_shows_its_cost() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let shown =
        fixture.get(&format!("/v1/campaigns/{}", fixture.world.campaign.id)).await.expect(200);
    assert_eq!(shown["usage"][0]["cost_micros"], 500);
    let mut summary = shown.clone();
    (summary["sessions"], summary["usage"]) = (json!([]), json!([]));
    let path = format!("/v1/campaigns/{}?summary=true", fixture.world.campaign.id);
    assert_eq!(fixture.get(&path).await.expect(200), summary);
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

#[tokio::test]
async fn budgets_of_agents_users_and_days_are_set_listed_and_removed() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let set = async |change: serde_json::Value| fixture.patch("/v1/budgets", &change).await;
    // It begins with what the ledger has.
    let agent =
        json!({ "owner": "agent", "key": "copywriter", "tokens": 9000, "on_limit": "fail" });
    let agent = set(agent).await.expect(200);
    assert_eq!(agent["spent"], json!({ "micros": 500, "tokens": 40 }));
    assert_eq!((&agent["limit"]["tokens"], &agent["on_limit"]), (&json!(9000), &json!("fail")));
    let day = set(json!({ "owner": "day", "micros": 5, "soft_micros": 4 })).await.expect(200);
    assert_eq!((&day["time_zone"], &day["soft"]["micros"]), (&json!("UTC"), &json!(4)));
    set(json!({ "owner": "user", "key": "ann", "tokens": 1 })).await.expect(200);
    let listed = fixture.get("/v1/budgets").await.expect(200);
    let owners = listed["items"].as_array().unwrap().iter();
    let owners: Vec<_> = owners.map(|it| (it["owner"].clone(), it["key"].clone())).collect();
    let pair = |owner: &str, key: &str| (json!(owner), json!(key));
    assert_eq!(owners, [pair("agent", "copywriter"), pair("day", ""), pair("user", "ann")]);
    let first = fixture.get("/v1/budgets?limit=1").await.expect(200);
    assert_eq!(first["next"], "agent/copywriter");
    let second = fixture.get("/v1/budgets?limit=1&cursor=agent/copywriter").await.expect(200);
    assert_eq!(second["items"][0]["owner"], "day");
    for (change, status, code) in [
        (json!({ "owner": "agent", "key": "copywritter", "tokens": 9 }), 404, "unknown_agent"),
        (json!({ "owner": "agent", "tokens": 9 }), 422, "bad_budget_key"),
        (json!({ "owner": "day", "key": "x", "tokens": 9 }), 422, "bad_budget_key"),
        (json!({ "owner": "user", "key": "a n n", "tokens": 9 }), 422, "bad_user"),
        (json!({ "owner": "day", "tokens": 0 }), 422, "bad_value"),
    ] {
        set(change).await.problem(status, code);
    }
    let removed = json!({ "owner": "day", "micros": null, "soft_micros": null });
    assert_eq!(set(removed).await.expect(200), json!(null));
}

#[tokio::test]
async fn parameters_of_a_campaign_are_changed_by_name_and_belong_to_its_versions() {
    let fixture = Fixture::new().await;
    let new = json!({ "name": "Spring", "parameters": { "agent_mode": "plan" } });
    let created = fixture.post("/v1/campaigns", &new).await.expect(201);
    assert_eq!(created["parameters"], json!({ "agent_mode": "plan" }));
    let path = format!("/v1/campaigns/{}", created["id"].as_str().unwrap());
    let change = json!({ "parameters": { "agent_mode": null, "deep_thinking": true } });
    let edited = fixture.patch(&path, &change).await.expect(200);
    assert_eq!(
        (&edited["version"], &edited["parameters"]),
        (&json!(2), &json!({ "deep_thinking": true }))
    );
    let first = fixture.get(&format!("{path}/versions/1")).await.expect(200);
    assert_eq!(first["parameters"], json!({ "agent_mode": "plan" }));
    let diff = fixture.get(&format!("{path}/version-diff?from=1")).await.expect(200);
    assert!(diff["parameters"].to_string().contains("deep_thinking"), "{diff}");
    for bad in [json!({ "Mode": 1 }), json!({ "mode": "x".repeat(5000) })] {
        let reply = fixture.patch(&path, &json!({ "parameters": bad })).await;
        reply.problem(422, "bad_parameters");
    }
}
