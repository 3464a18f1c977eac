//! `POST /v1/campaigns/{id}/tasks/bulk`: all or none, and all mistakes are listed.

use serde_json::{Value, json};

use super::{
    Fixture,
    client::{Reply, send},
};

fn task_json(n: usize) -> Value {
    json!({ "agent": "copywriter", "prompt": format!("Part {n}."), "idempotency_key": format!("part-{n}") })
}

fn tasks_json(n_tasks: usize) -> Value {
    (0..n_tasks).map(task_json).collect()
}

fn pointers(reply: &Reply) -> Vec<(String, String)> {
    let problem = reply.json();
    let text = |wrong: &Value, key: &str| wrong[key].as_str().unwrap_or_default().to_owned();
    let wrong = problem["errors"].as_array().unwrap().iter();
    wrong.map(|wrong| (text(wrong, "pointer"), text(wrong, "code"))).collect()
}

impl Fixture {
    fn bulk(&self) -> String {
        format!("{}/bulk", self.tasks())
    }

    async fn n_tasks(&self) -> i64 {
        sqlx::query_scalar("select count(*) from dalsegno.tasks")
            .fetch_one(&self.world.pool)
            .await
            .unwrap()
    }

    async fn post_lines(&self, body: &str) -> Reply {
        let ndjson = [("Content-Type", "application/x-ndjson")];
        send(self.app.address, "POST", &self.bulk(), &ndjson, body).await
    }
}

#[tokio::test]
async fn ten_thousand_tasks_are_added_at_once_and_a_repetition_changes_nothing() {
    let fixture = Fixture::new().await;
    let body = tasks_json(10_000);
    let added = fixture.post(&fixture.bulk(), &body).await.expect(201);
    assert_eq!(added["created"], 10_000);
    let again = fixture.post(&fixture.bulk(), &body).await;
    let replayed = again.expect(200);
    assert!(again.head.contains("idempotent-replayed: true"), "{}", again.head);
    assert_eq!(replayed["created"], 0);
    let ids = |reply: &Value| -> Vec<Value> {
        reply["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
    };
    assert_eq!(ids(&added), ids(&replayed));
    assert_eq!(fixture.n_tasks().await, 10_000);
    // The order in the lane is that of the request, and each task equals one that is added alone.
    let lane = format!("{}%2Fcopywriter%2Fmain", fixture.world.campaign.id);
    let lane = fixture.get(&format!("/v1/lanes/{lane}")).await.expect(200);
    for (place, member) in lane["members"].as_array().unwrap().iter().enumerate() {
        let job = fixture.get(&format!("/v1/jobs/{}", member["id"])).await.expect(200);
        assert_eq!(job["headers"]["task"], added["items"][place]["id"]);
    }
    let first = added["items"][0]["id"].as_str().unwrap();
    let task = fixture.get(&format!("/v1/tasks/{first}")).await.expect(200);
    assert_eq!((&task["prompt"], &task["state"]), (&json!("Part 0."), &json!("queued")));
    let key = [("Idempotency-Key", "part-0")];
    let one = json!({ "agent": "copywriter", "prompt": "Part 0." });
    let single = fixture.post_with(&fixture.tasks(), &one, &key).await.expect(200);
    assert_eq!(single["id"], first);
}

#[tokio::test]
async fn json_lines_are_accepted_like_an_array() {
    let fixture = Fixture::new().await;
    let lines = format!("{}\n\n{}\n", task_json(1), task_json(2));
    let added = fixture.post_lines(&lines).await.expect(201);
    assert_eq!((&added["created"], added["items"].as_array().unwrap().len()), (&json!(2), 2));
    // Missing tasks of a partly stored request are added.
    let more = fixture.post(&fixture.bulk(), &tasks_json(4)).await.expect(201);
    let created: Vec<&Value> =
        more["items"].as_array().unwrap().iter().map(|item| &item["created"]).collect();
    assert_eq!(created, [true, false, false, true]);
    assert_eq!(more["items"][1]["id"], added["items"][0]["id"]);
}

#[tokio::test]
async fn an_input_repeated_under_one_key_is_one_task() {
    let fixture = Fixture::new().await;
    let added =
        fixture.post(&fixture.bulk(), &json!([task_json(1), task_json(1)])).await.expect(201);
    assert_eq!(added["created"], 1);
    assert_eq!(added["items"][0]["id"], added["items"][1]["id"]);
    assert_eq!(fixture.n_tasks().await, 1);
}

#[tokio::test]
async fn a_key_of_the_request_becomes_a_key_for_each_task_without_one() {
    let fixture = Fixture::new().await;
    let send = async |key: &str, body: &Value| {
        fixture.post_with(&fixture.bulk(), body, &[("Idempotency-Key", key)]).await
    };
    let plain = |prompt: &str| json!({ "agent": "copywriter", "prompt": prompt });
    let body = json!([plain("One."), task_json(7), plain("Three.")]);
    let added = send("import", &body).await.expect(201);
    assert_eq!(added["created"], 3);
    let again = send("import", &body).await;
    assert!(again.head.contains("idempotent-replayed: true"), "{}", again.head);
    assert_eq!(again.expect(200)["created"], 0);
    let key = [("Idempotency-Key", "import/3")];
    let third = fixture.post_with(&fixture.tasks(), &plain("Three."), &key).await.expect(200);
    assert_eq!(third["id"], added["items"][2]["id"]);
    let other = send("import", &json!([plain("Two.")])).await;
    other.problem(422, "bad_items");
    assert_eq!(pointers(&other), [("/0".to_owned(), "idempotency_conflict".to_owned())]);
    let words = send(&"x".repeat(190), &body).await.problem(422, "bad_idempotency_key");
    assert!(words.contains("1 to 189"), "{words}");
    assert_eq!(fixture.n_tasks().await, 3);
}

#[tokio::test]
async fn every_invalid_task_is_located_and_nothing_is_stored() {
    let fixture = Fixture::new().await;
    let with = |field: &str, value: Value| {
        let mut ask = task_json(1);
        ask[field] = value;
        ask
    };
    let refuse = async |body: &Value, expected: &[(&str, &str)]| {
        let reply = fixture.post(&fixture.bulk(), body).await;
        reply.problem(422, "bad_items");
        let found = pointers(&reply);
        let found: Vec<_> = found.iter().map(|(p, c)| (p.as_str(), c.as_str())).collect();
        assert_eq!(found, expected);
    };
    let shapes = json!([
        task_json(0),
        with("promt", json!("x")),
        7,
        with("budget", json!({ "tokens": "many" }))
    ]);
    refuse(
        &shapes,
        &[("/1/promt", "bad_field"), ("/2", "bad_field"), ("/3/budget/tokens", "bad_field")],
    )
    .await;
    let names = json!([with("agent", json!("stranger")), task_json(0)]);
    refuse(&names, &[("/0/agent", "unknown_agent")]).await;
    let values = json!([
        with("prompt", json!(" ")),
        task_json(0),
        with("prompt", json!("a\0b")),
        with("instance", json!("Main one")),
        with("priority", json!(40_000)),
        with("idempotency_key", json!("")),
        with("idempotency_key", json!("ü".repeat(196))),
        with("budget", json!({ "micros": 0 })),
    ]);
    let codes = ["empty_text", "nul_in_text", "bad_instance", "bad_argument"];
    let places = ["/0", "/2", "/3", "/4"];
    let mut expected: Vec<_> = places.into_iter().zip(codes).collect();
    expected.extend([
        ("/5", "bad_idempotency_key"),
        ("/6", "bad_idempotency_key"),
        ("/7", "empty_budget"),
    ]);
    refuse(&values, &expected).await;
    let each_its_own = json!([
        with("promt", json!("x")),
        task_json(0),
        with("agent", json!("stranger")),
        with("prompt", json!(" ")),
        7,
    ]);
    let expected = [
        ("/0/promt", "bad_field"),
        ("/2/agent", "unknown_agent"),
        ("/3", "empty_text"),
        ("/4", "bad_field"),
    ];
    refuse(&each_its_own, &expected).await;
    // No task can have such a key.
    let unheard = json!([task_json(0), with("depends_on", json!([{ "key": "a\0b" }]))]);
    refuse(&unheard, &[("/1", "unknown_predecessor")]).await;
    // Conflicts within the request, and with stored tasks.
    let same_key = json!([task_json(1), with("prompt", json!("Another."))]);
    refuse(&same_key, &[("/1", "idempotency_conflict")]).await;
    fixture.post(&fixture.bulk(), &tasks_json(3)).await.expect(201);
    let other = |n: usize| json!({ "agent": "copywriter", "prompt": "Another.", "idempotency_key": format!("part-{n}") });
    refuse(
        &json!([task_json(7), other(0), task_json(1), other(2)]),
        &[("/1", "idempotency_conflict"), ("/3", "idempotency_conflict")],
    )
    .await;
    assert_eq!(fixture.n_tasks().await, 3);
}

#[tokio::test]
async fn an_unacceptable_body_is_refused_with_the_reason() {
    let fixture = Fixture::with(&[("http.max_bulk_bytes", "2000000")]).await;
    let path = fixture.bulk();
    fixture.post(&path, &json!([])).await.problem(422, "no_tasks");
    fixture.post(&path, &json!({})).await.problem(400, "bad_json");
    fixture.post_lines("\n").await.problem(422, "no_tasks");
    let many = fixture.post(&path, &tasks_json(10_001)).await.problem(413, "too_many_tasks");
    assert!(many.contains("10000"), "{many}");
    let long = json!([{ "agent": "copywriter", "prompt": "x".repeat(2_000_000) }]);
    let detail = fixture.post(&path, &long).await.problem(413, "body_too_large");
    assert!(detail.contains("http.max_bulk_bytes"), "{detail}");
    let form = [("Content-Type", "text/plain")];
    fixture.post_with(&path, &tasks_json(1), &form).await.problem(415, "not_json");
    let nil = "/v1/campaigns/00000000-0000-0000-0000-000000000000/tasks/bulk";
    fixture.post(nil, &tasks_json(1)).await.problem(404, "unknown_campaign");
    let close = format!("/v1/campaigns/{}/close", fixture.world.campaign.id);
    fixture.post(&close, &json!({})).await.expect(200);
    fixture.post(&path, &tasks_json(1)).await.problem(409, "campaign_closed");
    assert_eq!(fixture.n_tasks().await, 0);
}
