//! `/v1/campaigns/{id}/memory`.

use serde_json::{Value, json};

use super::Fixture;

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_memory_is_written_read_searched_and_revoked() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/memory", fixture.world.campaign.id);
    let edict = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Write short sentences." });
    let first = fixture.post(&path, &edict).await.expect(200);
    assert_eq!((&first["version"], &first["changed"]), (&json!(1), &json!(true)));
    assert_eq!(fixture.post(&path, &edict).await.expect(200)["changed"], false);
    let next = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Be brief.", "expected_version": 1 });
    assert_eq!(fixture.post(&path, &next).await.expect(200)["version"], 2);
    let words = fixture.post(&path, &next).await.problem(409, "item_changed");
    assert!(words.contains("at version 2, not at 1"), "{words}");
    let entry = json!({ "kind": "journal", "owner": "copywriter_2", "title": "A note", "body": "The tides." });
    let entry = fixture.post(&path, &entry).await.expect(200);
    assert_eq!(entry["owner"], "copywriter/2");
    for number in 0..3 {
        let record = json!({ "kind": "record", "name": format!("r{number}"), "title": "Record", "body": "A fact." });
        fixture.post(&path, &record).await.expect(200);
    }

    let page = fixture.get(&format!("{path}?kind=record&limit=2")).await.expect(200);
    assert_eq!(names(&page), ["r2", "r1"]);
    assert!(page["items"][0]["body"].is_null());
    let cursor = page["next"].as_str().unwrap();
    let rest =
        fixture.get(&format!("{path}?kind=record&limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((names(&rest), &rest["next"]), (vec!["r0"], &Value::Null));
    let journal = fixture.get(&format!("{path}?owner=copywriter%2F2")).await.expect(200);
    assert_eq!(names(&journal), [entry["name"].as_str().unwrap()]);

    let named = fixture.get(&format!("{path}/find?kind=edict&name=tone")).await.expect(200);
    assert_eq!((&named["id"], &named["body"]), (&first["id"], &json!("Be brief.")));
    fixture.get(&format!("{path}/find?kind=edict&name=none")).await.problem(404, "unknown_item");
    fixture.get(&format!("{path}/find?kind=journal&name=x")).await.problem(422, "bad_owner");
    let item = format!("{path}/{}", first["id"].as_str().unwrap());
    assert_eq!(fixture.get(&item).await.expect(200)["body"], "Be brief.");
    let earlier = fixture.get(&format!("{item}?version=1")).await.expect(200);
    assert_eq!(earlier["body"], "Write short sentences.");
    fixture.get(&format!("{item}?version=3")).await.problem(404, "unknown_version");
    let versions = fixture.get(&format!("{item}/versions")).await.expect(200);
    assert_eq!(versions["items"].as_array().unwrap().len(), 2);
    let found = fixture.get(&format!("{path}/search?q=brief")).await.expect(200);
    assert_eq!(
        (names(&found), &found["items"][0]["snippet"]),
        (vec!["tone"], &json!("Be **brief**."))
    );
    let revoke = format!("{item}/revoke");
    assert!(fixture.post(&revoke, &json!({})).await.expect(200)["revoked_at"].is_string());
    fixture.post(&revoke, &json!({})).await.problem(409, "item_revoked");
    assert_eq!(
        names(&fixture.get(&format!("{path}/search?q=brief")).await.expect(200)),
        Vec::<&str>::new()
    );
    assert_eq!(
        names(&fixture.get(&format!("{path}?kind=edict")).await.expect(200)),
        Vec::<&str>::new()
    );
    assert_eq!(
        names(&fixture.get(&format!("{path}?kind=edict&ended=true")).await.expect(200)),
        ["tone"]
    );
    assert!(fixture.get(&item).await.expect(200)["revoked_by"].is_string());
}

#[tokio::test]
async fn an_export_is_imported_into_another_campaign_whole_or_not_at_all() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/memory", fixture.world.campaign.id);
    for (kind, name) in [("edict", "tone"), ("record", "prices"), ("journal", "day-one")] {
        let owner = (kind == "journal").then_some("planner");
        let item =
            json!({ "kind": kind, "owner": owner, "name": name, "title": "T", "body": "Text." });
        fixture.post(&path, &item).await.expect(200);
    }
    let first = fixture.get(&format!("{path}/export?limit=2")).await.expect(200);
    let cursor = first["next"].as_str().unwrap();
    let rest = fixture.get(&format!("{path}/export?cursor={cursor}")).await.expect(200);
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
        fixture.post("/v1/campaigns", &json!({ "name": "Other", "brief": "x" })).await.expect(201);
    let other = format!("/v1/campaigns/{}/memory", other["id"].as_str().unwrap());
    let import = |items: &[Value]| json!({ "items": items });
    let mut wrong = items.clone();
    wrong[1]["name"] = json!("../prices");
    let words =
        fixture.post(&format!("{other}/import"), &import(&wrong)).await.problem(422, "bad_items");
    assert!(words.contains("/items/1: ") && words.contains("slashes and dots"), "{words}");
    assert_eq!(names(&fixture.get(&other).await.expect(200)), Vec::<&str>::new());
    wrong[1]["at"] = json!("records/prices.md");
    let words =
        fixture.post(&format!("{other}/import"), &import(&wrong)).await.problem(422, "bad_items");
    assert!(words.contains("records/prices.md: "), "{words}");
    let done = fixture.post(&format!("{other}/import"), &import(&items)).await.expect(200);
    assert_eq!((&done["created"], &done["unchanged"]), (&json!(3), &json!(0)));
    assert_eq!(names(&fixture.get(&other).await.expect(200)).len(), 3);
}

#[tokio::test]
async fn invalid_memory_requests_are_refused_with_a_reason() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/memory", fixture.world.campaign.id);
    let unknown = "00000000-0000-0000-0000-000000000000";
    let item = |kind: &str, name: &str, body: &str| json!({ "kind": kind, "name": name, "title": "T", "body": body });
    let post = async |body: Value| fixture.post(&path, &body).await;
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
    let elsewhere = format!("/v1/campaigns/{unknown}/memory");
    fixture.post(&elsewhere, &item("edict", "x", "Text.")).await.problem(404, "unknown_campaign");
    fixture.get(&elsewhere).await.problem(404, "unknown_campaign");
    fixture.get(&format!("{path}/{unknown}")).await.problem(404, "unknown_item");
    fixture.get(&format!("{path}/nothing")).await.problem(400, "bad_id");
    fixture.get(&format!("{path}/search?q=%21")).await.problem(422, "no_words");
    let close = format!("/v1/campaigns/{}/close", fixture.world.campaign.id);
    fixture.post(&close, &json!({})).await.expect(200);
    post(item("edict", "x", "Text.")).await.problem(409, "campaign_closed");
    assert_eq!(names(&fixture.get(&path).await.expect(200)), Vec::<&str>::new());
}
