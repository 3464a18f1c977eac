//! `/v1/campaigns/{id}/memory`.

use serde_json::{Value, json};

use super::Ground;

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_memory_is_written_read_searched_and_revoked() {
    let ground = Ground::new().await;
    let path = format!("/v1/campaigns/{}/memory", ground.world.campaign.id);
    let edict = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Write short sentences." });
    let first = ground.post(&path, &edict).await.expect(200);
    assert_eq!((&first["version"], &first["changed"]), (&json!(1), &json!(true)));
    assert_eq!(ground.post(&path, &edict).await.expect(200)["changed"], false);
    let next = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Be brief.", "expected_version": 1 });
    assert_eq!(ground.post(&path, &next).await.expect(200)["version"], 2);
    let words = ground.post(&path, &next).await.problem(409, "item_changed");
    assert!(words.contains("at version 2, not at 1"), "{words}");
    let entry = json!({ "kind": "journal", "owner": "copywriter_2", "title": "A note", "body": "The tides." });
    let entry = ground.post(&path, &entry).await.expect(200);
    assert_eq!(entry["owner"], "copywriter/2");
    for number in 0..3 {
        let record = json!({ "kind": "record", "name": format!("r{number}"), "title": "Record", "body": "A fact." });
        ground.post(&path, &record).await.expect(200);
    }

    let page = ground.get(&format!("{path}?kind=record&limit=2")).await.expect(200);
    assert_eq!(names(&page), ["r2", "r1"]);
    assert!(page["items"][0]["body"].is_null());
    let cursor = page["next"].as_str().unwrap();
    let rest = ground.get(&format!("{path}?kind=record&limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((names(&rest), &rest["next"]), (vec!["r0"], &Value::Null));
    let journal = ground.get(&format!("{path}?owner=copywriter%2F2")).await.expect(200);
    assert_eq!(names(&journal), [entry["name"].as_str().unwrap()]);

    let named = ground.get(&format!("{path}/find?kind=edict&name=tone")).await.expect(200);
    assert_eq!((&named["id"], &named["body"]), (&first["id"], &json!("Be brief.")));
    ground.get(&format!("{path}/find?kind=edict&name=none")).await.problem(404, "unknown_item");
    ground.get(&format!("{path}/find?kind=journal&name=x")).await.problem(422, "bad_owner");
    let item = format!("{path}/{}", first["id"].as_str().unwrap());
    assert_eq!(ground.get(&item).await.expect(200)["body"], "Be brief.");
    let earlier = ground.get(&format!("{item}?version=1")).await.expect(200);
    assert_eq!(earlier["body"], "Write short sentences.");
    ground.get(&format!("{item}?version=3")).await.problem(404, "unknown_version");
    let versions = ground.get(&format!("{item}/versions")).await.expect(200);
    assert_eq!(versions["items"].as_array().unwrap().len(), 2);
    let found = ground.get(&format!("{path}/search?q=brief")).await.expect(200);
    assert_eq!(
        (names(&found), &found["items"][0]["snippet"]),
        (vec!["tone"], &json!("Be **brief**."))
    );
    let revoke = format!("{item}/revoke");
    assert!(ground.post(&revoke, &json!({})).await.expect(200)["revoked_at"].is_string());
    ground.post(&revoke, &json!({})).await.problem(409, "item_revoked");
    assert_eq!(
        names(&ground.get(&format!("{path}/search?q=brief")).await.expect(200)),
        Vec::<&str>::new()
    );
    assert_eq!(
        names(&ground.get(&format!("{path}?kind=edict")).await.expect(200)),
        Vec::<&str>::new()
    );
    assert_eq!(
        names(&ground.get(&format!("{path}?kind=edict&ended=true")).await.expect(200)),
        ["tone"]
    );
    assert!(ground.get(&item).await.expect(200)["revoked_by"].is_string());
}

#[tokio::test]
async fn what_one_campaign_exports_another_takes_in_whole_or_not_at_all() {
    let ground = Ground::new().await;
    let path = format!("/v1/campaigns/{}/memory", ground.world.campaign.id);
    for (kind, name) in [("edict", "tone"), ("record", "prices"), ("journal", "day-one")] {
        let owner = (kind == "journal").then_some("planner");
        let item =
            json!({ "kind": kind, "owner": owner, "name": name, "title": "T", "body": "Text." });
        ground.post(&path, &item).await.expect(200);
    }
    let first = ground.get(&format!("{path}/export?limit=2")).await.expect(200);
    let cursor = first["next"].as_str().unwrap();
    let rest = ground.get(&format!("{path}/export?cursor={cursor}")).await.expect(200);
    let pages = [&first, &rest].map(|page| page["items"].as_array().unwrap().clone());
    let whole = pages.concat();
    let items: Vec<Value> = whole
        .iter()
        .map(|item| {
            let part = |name: &str| item[name].clone();
            json!({ "kind": part("kind"), "owner": part("owner"), "name": part("name"), "title": part("title"), "body": part("body") })
        })
        .collect();
    assert_eq!(items.len(), 3);
    let other =
        ground.post("/v1/campaigns", &json!({ "name": "Other", "brief": "x" })).await.expect(201);
    let other = format!("/v1/campaigns/{}/memory", other["id"].as_str().unwrap());
    let import = |items: &[Value]| json!({ "items": items });
    let mut wrong = items.clone();
    wrong[1]["name"] = json!("../prices");
    let words =
        ground.post(&format!("{other}/import"), &import(&wrong)).await.problem(422, "bad_items");
    assert!(words.contains("/items/1: ") && words.contains("slashes and dots"), "{words}");
    assert_eq!(names(&ground.get(&other).await.expect(200)), Vec::<&str>::new());
    wrong[1]["at"] = json!("records/prices.md");
    let words =
        ground.post(&format!("{other}/import"), &import(&wrong)).await.problem(422, "bad_items");
    assert!(words.contains("records/prices.md: "), "{words}");
    let done = ground.post(&format!("{other}/import"), &import(&items)).await.expect(200);
    assert_eq!((&done["created"], &done["unchanged"]), (&json!(3), &json!(0)));
    assert_eq!(names(&ground.get(&other).await.expect(200)).len(), 3);
}

#[tokio::test]
async fn what_cannot_be_written_or_looked_at_is_refused_in_words() {
    let ground = Ground::new().await;
    let path = format!("/v1/campaigns/{}/memory", ground.world.campaign.id);
    let nobody = "00000000-0000-0000-0000-000000000000";
    let item = |kind: &str, name: &str, body: &str| json!({ "kind": kind, "name": name, "title": "T", "body": body });
    let post = async |body: Value| ground.post(&path, &body).await;
    post(item("edict", "../x", "Text.")).await.problem(422, "bad_item_name");
    post(item("edict", "x", "a\0b")).await.problem(422, "nul_in_text");
    post(item("edict", "x", &"x".repeat(60_000))).await.problem(413, "text_too_long");
    post(item("journal", "x", "Text.")).await.problem(422, "bad_owner");
    let mut owned = item("record", "x", "Text.");
    owned["owner"] = json!("planner");
    post(owned).await.problem(422, "bad_owner");
    let mut over = item("record", "x", "Text.");
    over["expires_at"] = json!("2001-01-01T00:00:00Z");
    post(over).await.problem(422, "expired");
    let mut line = item("record", "x", "Text.");
    line["title"] = json!("a\nb");
    post(line).await.problem(422, "bad_title");
    let elsewhere = format!("/v1/campaigns/{nobody}/memory");
    ground.post(&elsewhere, &item("edict", "x", "Text.")).await.problem(404, "unknown_campaign");
    ground.get(&elsewhere).await.problem(404, "unknown_campaign");
    ground.get(&format!("{path}/{nobody}")).await.problem(404, "unknown_item");
    ground.get(&format!("{path}/nothing")).await.problem(400, "bad_id");
    ground.get(&format!("{path}/search?q=%21")).await.problem(422, "no_words");
    let close = format!("/v1/campaigns/{}/close", ground.world.campaign.id);
    ground.post(&close, &json!({})).await.expect(200);
    post(item("edict", "x", "Text.")).await.problem(409, "campaign_closed");
    assert_eq!(names(&ground.get(&path).await.expect(200)), Vec::<&str>::new());
}
