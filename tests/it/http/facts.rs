//! `/v1/users/{name}/facts`, and the users of campaigns.

use serde_json::{Value, json};

use super::{Fixture, client};

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn facts_are_stated_read_searched_edited_revoked_and_forgotten() {
    let fixture = Fixture::new().await;
    let path = "/v1/users/ann@example.org/facts";
    let fact = |about: &str, text: &str| json!({ "attribute": about, "text": text });
    let first = fixture.post(path, &fact("Tone", "Wants short sentences.")).await.expect(200);
    assert_eq!((&first["source"], &first["trust"]), (&json!("stated"), &json!("operator")));
    let again = fact("Style", "wants SHORT sentences");
    fixture.post(path, &again).await.problem(409, "fact_known");
    fixture.post(path, &fact("City", "Lives in Bergen.")).await.expect(200);
    fixture.post(path, &fact("City", "Lives in Porto.")).await.expect(200);
    fixture.post(path, &fact("City", "…")).await.problem(422, "bad_fact");
    fixture.post("/v1/users/a%20b/facts", &again).await.problem(422, "bad_user");

    let page = fixture.get(&format!("{path}?limit=1")).await.expect(200);
    assert_eq!(texts(&page), ["Lives in Porto."]);
    let cursor = page["next"].as_str().unwrap();
    let rest = fixture.get(&format!("{path}?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!((texts(&rest), &rest["next"]), (vec!["Wants short sentences."], &Value::Null));
    let all = fixture.get(&format!("{path}?ended=true")).await.expect(200);
    assert_eq!(texts(&all), ["Lives in Porto.", "Lives in Bergen.", "Wants short sentences."]);
    assert_eq!(all["items"][1]["ended_because"], "contradicted");
    assert_eq!(all["items"][1]["replaced_by"], all["items"][0]["id"]);
    let found = fixture.get(&format!("{path}/search?q=porto")).await.expect(200);
    assert_eq!(texts(&found), ["Lives in Porto."]);

    let one = format!("{path}/{}", first["id"].as_str().unwrap());
    let edited = json!({ "text": "Wants long sentences." });
    let edited = fixture.post(&format!("{one}/edit"), &edited).await.expect(200);
    assert_eq!((&edited["source"], &edited["attribute"]), (&json!("edited"), &json!("Tone")));
    assert_eq!(fixture.get(&one).await.expect(200)["ended_because"], "edited");
    fixture.post(&format!("{one}/revoke"), &json!({})).await.problem(409, "fact_ended");
    let of_another = one.replace("ann@example.org", "ben");
    fixture.get(&of_another).await.problem(404, "unknown_fact");
    let two = format!("{path}/{}", edited["id"].as_str().unwrap());
    let revoked = fixture.post(&format!("{two}/revoke"), &json!({})).await.expect(200);
    assert_eq!(revoked["ended_because"], "revoked");
    let forgotten = fixture.post("/v1/users/ann@example.org/forget", &json!({})).await.expect(200);
    assert_eq!(forgotten, json!({ "facts": 4, "sessions": [] }));
    let nothing = fixture.get(&format!("{path}?ended=true")).await.expect(200);
    assert_eq!(texts(&nothing), Vec::<&str>::new());
}

#[tokio::test]
async fn a_campaign_shows_its_user() {
    let fixture = Fixture::new().await;
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let path = format!("{campaign}/user");
    assert_eq!(fixture.get(&path).await.expect(200), Value::Null);
    let put = async |user: Value| {
        let body = json!({ "user": user }).to_string();
        client::send(fixture.app.address, "PUT", &path, &[], &body).await
    };
    assert_eq!(put(json!("ann")).await.expect(200)["user"], "ann");
    assert_eq!(fixture.get(&path).await.expect(200)["user"], "ann");
    put(json!("no/name")).await.problem(422, "bad_user");
    assert_eq!(put(Value::Null).await.expect(200), Value::Null);
    let read = fixture.get(&format!("{campaign}/extractions")).await.expect(200);
    assert_eq!(read["items"], json!([]));
}

#[tokio::test]
async fn extractions_are_listed_in_pages_without_gaps() {
    let fixture = Fixture::new().await;
    let id = fixture.world.campaign.id;
    // Two rows per time, so that a page ends between them.
    sqlx::query(
        "insert into dalsegno.fact_extractions
                (session_id, to_seq, from_seq, campaign_id, ended_at, n_requests, n_found, n_new, outcome, agent)
         select gen_random_uuid(), n + 1, n, $1, '2026-11-20T12:00:00Z'::timestamptz + n / 2 * interval '1 second', 1, 0, 0, 'done', 'copywriter'
           from generate_series(0, 4) as n",
    )
    .bind(id)
    .execute(&fixture.app.pool)
    .await
    .unwrap();
    let path = format!("/v1/campaigns/{id}/extractions");
    let (mut seen, mut next) = (Vec::new(), String::new());
    for _ in 0..5 {
        let page = fixture.get(&format!("{path}?limit=1{next}")).await.expect(200);
        seen.push(page["items"][0]["to_seq"].as_i64().unwrap());
        next = page["next"].as_str().map_or_else(String::new, |next| format!("&cursor={next}"));
    }
    assert_eq!((next.as_str(), seen[0]), ("", 5));
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let detail = fixture.get(&format!("{path}?cursor=7")).await.problem(400, "bad_query");
    assert!(detail.contains("`cursor`"), "{detail}");
}
