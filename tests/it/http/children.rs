//! `depends_on` in all interfaces, and `POST /v1/tasks/{id}/children`.

use serde_json::{Value, json};

use super::Fixture;

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap()
}

/// Adds a task that is done.
async fn parent(fixture: &Fixture) -> String {
    let ask = json!({ "agent": "copywriter", "prompt": "Plan." });
    let task = fixture.post(&fixture.tasks(), &ask).await.expect(201);
    let done = "update dalsegno.tasks set state = 'done', result = 'Two parts.', started_at = now(), ended_at = now() where id = $1::uuid";
    sqlx::query(done).bind(id(&task)).execute(&fixture.app.pool).await.unwrap();
    id(&task).to_owned()
}

#[tokio::test]
async fn a_task_lists_its_predecessors() {
    let fixture = Fixture::new().await;
    let ask = |prompt: &str| json!({ "agent": "copywriter", "prompt": prompt });
    let one = fixture.post(&fixture.tasks(), &ask("One.")).await.expect(201);
    let waits = json!({ "agent": "planner", "prompt": "Join.", "depends_on": [id(&one)], "on_failure": "cancel" });
    let waits = fixture.post(&fixture.tasks(), &waits).await.expect(201);
    let shown = fixture.get(&format!("/v1/tasks/{}", id(&waits))).await.expect(200);
    let expected = json!({
        "depends_on": [{ "task_id": id(&one), "agent": "copywriter", "instance": "main", "state": "queued" }],
        "on_failure": "cancel", "waits": true,
    });
    assert_eq!(shown["waiting"], expected);
    let told = fixture.get(&format!("/v1/tasks/{}/explain", id(&waits))).await.expect(200);
    assert!(told["because"].as_str().unwrap().starts_with("It waits for 1 of 1 tasks: "), "{told}");
    fixture
        .post(&format!("/v1/tasks/{}/cancel", id(&one)), &json!({ "reason": "no" }))
        .await
        .expect(200);
    let shown = fixture.get(&format!("/v1/tasks/{}", id(&waits))).await.expect(200);
    assert_eq!((&shown["state"], &shown["waiting"]["waits"]), (&json!("cancelled"), &json!(false)));
    let why = shown["cancelled_because"].as_str().unwrap();
    assert!(why.contains(id(&one)) && why.ends_with("was cancelled"), "{why}");
    let unknown = json!({ "agent": "planner", "prompt": "x", "depends_on": [uuid::Uuid::nil()] });
    fixture.post(&fixture.tasks(), &unknown).await.problem(404, "unknown_predecessor");
}

#[tokio::test]
async fn many_tasks_depend_on_each_other_by_position_and_key() {
    let fixture = Fixture::new().await;
    let path = format!("{}/bulk", fixture.tasks());
    let body = json!([
        { "agent": "copywriter", "prompt": "One.", "idempotency_key": "one" },
        { "agent": "copywriter", "instance": "b", "prompt": "Two." , "depends_on": [{ "item": 0 }] },
        { "agent": "planner", "prompt": "Join.", "depends_on": [{ "item": 1 }, { "key": "one" }], "idempotency_key": "join" },
    ]);
    let made = fixture.post(&path, &body).await.expect(201);
    let ids: Vec<&str> = made["items"].as_array().unwrap().iter().map(id).collect();
    let shown = fixture.get(&format!("/v1/tasks/{}", ids[2])).await.expect(200);
    let others = shown["waiting"]["depends_on"].as_array().unwrap();
    let others: Vec<_> = others.iter().map(|other| other["task_id"].as_str().unwrap()).collect();
    assert_eq!(others, [ids[1], ids[0]]);
    // A key of an earlier request works, too.
    let later =
        json!([{ "agent": "planner", "prompt": "Later.", "depends_on": [{ "key": "join" }] }]);
    let later = fixture.post(&path, &later).await.expect(201);
    let later = fixture.get(&format!("/v1/tasks/{}", id(&later["items"][0]))).await.expect(200);
    assert_eq!(later["waiting"]["depends_on"][0]["task_id"], ids[2]);
    let forward = json!([
        { "agent": "copywriter", "prompt": "x", "depends_on": [{ "item": 1 }] },
        { "agent": "copywriter", "prompt": "y", "depends_on": [{ "item": 1 }] },
        { "agent": "copywriter", "prompt": "z" },
    ]);
    let before = fixture.get("/v1/tasks").await.expect(200);
    let refused = fixture.post(&path, &forward).await;
    refused.problem(422, "bad_items");
    for place in ["/0", "/1"] {
        assert!(refused.body.contains(&format!("\"{place}\"")), "{}", refused.body);
    }
    assert_eq!(fixture.get("/v1/tasks").await.expect(200), before, "nothing was added");
}

#[tokio::test]
async fn children_and_their_continuation_are_added_in_one_request() {
    let fixture = Fixture::new().await;
    let parent = parent(&fixture).await;
    let path = format!("/v1/tasks/{parent}/children");
    let body = json!({
        "children": [
            { "agent": "copywriter", "instance": "a", "prompt": "Write part one." },
            { "agent": "reviewer", "prompt": "Read it.", "depends_on": [{ "item": 0 }] },
        ],
        "continuation": { "prompt": "Put it together." },
    });
    let key = [("Idempotency-Key", "plan-1")];
    let first = fixture.post_with(&path, &body, &key).await;
    let made = first.expect(201);
    let again = fixture.post_with(&path, &body, &key).await;
    assert!(again.head.contains("idempotent-replayed: true"), "{again:?}");
    assert_eq!(again.expect(200)["continuation"]["id"], made["continuation"]["id"]);
    let child = fixture.get(&format!("/v1/tasks/{}", id(&made["children"][1]))).await.expect(200);
    assert_eq!(child["parent_id"], json!(parent));
    let last = fixture.get(&format!("/v1/tasks/{}", id(&made["continuation"]))).await.expect(200);
    assert_eq!((&last["agent"], &last["continues_id"]), (&json!("copywriter"), &json!(parent)));
    assert_eq!(last["waiting"]["depends_on"].as_array().unwrap().len(), 2);
    // In each later state of the parent.
    for sql in [
        "update dalsegno.tasks set state = 'failed', result = null, error = 'x' where id = $1::uuid",
        "update dalsegno.tasks set state = 'done', result = 'Two parts.', error = null where id = $1::uuid",
    ] {
        sqlx::query(sql).bind(&parent).execute(&fixture.app.pool).await.unwrap();
        let again = fixture.post_with(&path, &body, &key).await;
        assert_eq!(again.expect(200)["continuation"]["id"], made["continuation"]["id"]);
    }
    let cancelled =
        fixture.post(&format!("/v1/tasks/{parent}/cancel"), &json!({ "reason": "no" })).await;
    let told = cancelled.expect(200);
    assert_eq!(told["cancel"], "had_ended");
    assert_eq!(told["below"], json!({ "cancelled": 3, "stopping": 0 }));
    let states = fixture.get("/v1/tasks?state=cancelled").await.expect(200);
    assert_eq!(states["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_invalid_child_task_is_located() {
    let fixture = Fixture::new().await;
    let parent = parent(&fixture).await;
    let path = format!("/v1/tasks/{parent}/children");
    let with = |children: Value, prompt: &str| json!({ "children": children, "continuation": { "prompt": prompt } });
    let child = json!({ "agent": "copywriter", "prompt": "x" });
    let empty = json!({ "agent": "copywriter", "prompt": " " });
    let refused = fixture.post(&path, &with(json!([child, empty]), "Go on.")).await;
    refused.problem(422, "bad_items");
    assert!(refused.body.contains("\"/children/1\""), "{}", refused.body);
    let refused = fixture.post(&path, &with(json!([child]), "")).await;
    refused.problem(422, "bad_items");
    assert!(refused.body.contains("\"/continuation\""), "{}", refused.body);
    fixture.post(&path, &with(json!([]), "Go on.")).await.problem(422, "bad_argument");
    let unknown = json!([{ "agent": "stranger", "prompt": "x" }]);
    fixture.post(&path, &with(unknown, "Go on.")).await.problem(404, "unknown_agent");
    let ask = json!({ "agent": "copywriter", "prompt": "Not yet." });
    let queued = fixture.post(&fixture.tasks(), &ask).await.expect(201);
    let path = format!("/v1/tasks/{}/children", id(&queued));
    fixture.post(&path, &with(json!([child]), "Go on.")).await.problem(409, "no_parent");
    let nil = "/v1/tasks/00000000-0000-0000-0000-000000000000/children";
    fixture.post(nil, &with(json!([child]), "Go on.")).await.problem(404, "unknown_task");
}
