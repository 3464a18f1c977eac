//! `/v1/flow-templates` and `/v1/flows`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn a_flow_is_started_shown_paused_resumed_retried_and_cancelled() {
    let fixture = Fixture::new().await;
    let templates = fixture.get("/v1/flow-templates").await.expect(200);
    let names: Vec<_> =
        templates["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("article-series"), &json!("reviewed-text")]);
    let path = format!("/v1/campaigns/{}/flows", fixture.world.campaign.id);
    let body = json!({ "template": "reviewed-text", "inputs": { "task": "Write." } });
    let started = fixture.post(&path, &body).await;
    let flow = started.expect(201);
    let at = format!("/v1/flows/{}", flow["id"].as_str().unwrap());
    assert!(started.head.contains(&format!("location: {at}")), "{started:?}");
    let shown = fixture.get(&at).await.expect(200);
    let steps: Vec<_> = shown["steps"].as_array().unwrap().iter().map(|it| &it["step"]).collect();
    assert_eq!(steps, [&json!("write"), &json!("review"), &json!("revise")]);
    assert_eq!((&shown["state"], &shown["open"]), (&json!("running"), &json!(3)));
    let paused = fixture.post(&format!("{at}/pause"), &json!({})).await.expect(200);
    assert_eq!(paused["state"], "paused");
    fixture.post(&format!("{at}/pause"), &json!({})).await.problem(409, "flow_paused");
    assert_eq!(
        fixture.post(&format!("{at}/resume"), &json!({})).await.expect(200)["state"],
        "running"
    );
    fixture.post(&format!("{at}/resume"), &json!({})).await.problem(409, "flow_not_paused");
    let again = fixture.post(&format!("{at}/retry"), &json!({ "from": "write" })).await.expect(200);
    assert_eq!(again["state"], "running");
    let after = fixture.get(&at).await.expect(200);
    assert_ne!(after["steps"][0]["task_id"], shown["steps"][0]["task_id"]);
    let listed = fixture.get("/v1/flows?state=running").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let cancelled =
        fixture.post(&format!("{at}/cancel"), &json!({ "reason": "no" })).await.expect(200);
    assert_eq!((&cancelled["state"], &cancelled["cancelled"]), (&json!("cancelled"), &json!(3)));
    fixture
        .post(&format!("{at}/cancel"), &json!({ "reason": "no" }))
        .await
        .problem(409, "flow_ended");
    fixture
        .post(&format!("{at}/retry"), &json!({ "from": "revew" }))
        .await
        .problem(404, "unknown_step");
}

#[tokio::test]
async fn invalid_flow_inputs_are_refused() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/flows", fixture.world.campaign.id);
    let ask = |template: &str, inputs| json!({ "template": template, "inputs": inputs });
    fixture.post(&path, &ask("nothing", json!({}))).await.problem(404, "unknown_template");
    let words =
        fixture.post(&path, &ask("article-series", json!({ "topic": ["x"], "parts": "y" }))).await;
    assert!(words.problem(422, "bad_inputs").contains("`topic` must be one text"));
    let one = ask("article-series", json!({ "topic": "x", "parts": "y" }));
    let started = fixture.post(&path, &one).await.expect(201);
    assert_eq!(started["inputs"], json!({ "topic": "x", "parts": ["y"] }));
    let nil = "/v1/flows/00000000-0000-0000-0000-000000000000";
    fixture.get(nil).await.problem(404, "unknown_flow");
    for verb in ["pause", "resume", "cancel"] {
        fixture.post(&format!("{nil}/{verb}"), &json!({})).await.problem(404, "unknown_flow");
    }
}

#[tokio::test]
async fn a_broken_flow_template_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["agents", "flows"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    let write =
        |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
    let writer = "---\nname: writer\ndescription: Writes\n---\nYou write.\n";
    write("agents/writer.md", writer);
    write("agents/editor.md", "---\nname: editor\n---\n");
    let one = "---\nname: one\ndescription: One step\nsteps:\n  - step: only\n    agent: writer\n---\n## only\n\nGo.\n";
    write("flows/one.md", one);
    write("flows/two.md", "---\nname: two\n---\n");
    let settings = [
        ("agents.folder", path("agents")),
        ("flows.folder", path("flows")),
        ("agents.look_every_ms", "0".to_owned()),
    ];
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let fixture = Fixture::with(&settings).await;
    let ask = |agent: &str| json!({ "agent": agent, "prompt": "Write." });
    fixture.post(&fixture.tasks(), &ask("writer")).await.expect(201);
    let words = fixture.post(&fixture.tasks(), &ask("editor")).await.problem(409, "broken_agent");
    assert!(words.contains("editor.md"), "{words}");
    let bulk = format!("{}/bulk", fixture.tasks());
    fixture.post(&bulk, &json!([ask("editor")])).await.problem(422, "bad_items");
    let agents = fixture.get("/v1/agents").await.expect(200);
    assert_eq!(agents["items"].as_array().unwrap().len(), 1);
    assert!(!agents["problems"].as_array().unwrap().is_empty());
    fixture.post("/v1/agents/editor/pause", &json!({ "reason": "broken" })).await.expect(200);
    let templates = fixture.get("/v1/flow-templates").await.expect(200);
    assert_eq!(templates["items"][0]["name"], "one");
    assert_eq!(templates["broken"][0]["name"], "two");
    let start = |name: &str| json!({ "template": name, "inputs": {} });
    let flows = format!("/v1/campaigns/{}/flows", fixture.world.campaign.id);
    fixture.post(&flows, &start("one")).await.expect(201);
    fixture.post(&flows, &start("two")).await.problem(409, "bad_templates");
    // A file that becomes invalid later is refused, too, until it is repaired.
    write("agents/writer.md", "---\nname: writer\n---\n");
    fixture.post(&fixture.tasks(), &ask("writer")).await.problem(409, "broken_agent");
    write("agents/writer.md", writer);
    fixture.post(&fixture.tasks(), &ask("writer")).await.expect(201);
}

#[tokio::test]
async fn a_task_lists_the_flow_templates_that_its_agent_may_start() {
    let fixture = Fixture::new().await;
    let task = |names: serde_json::Value| json!({ "agent": "planner", "prompt": "Plan.", "flow_templates": names });
    let key = [("Idempotency-Key", "plan-1")];
    let added = fixture.post_with(&fixture.tasks(), &task(json!(["reviewed-text"])), &key).await;
    let added = added.expect(201);
    let id = added["id"].as_str().unwrap();
    let shown = fixture.get(&format!("/v1/tasks/{id}")).await.expect(200);
    assert_eq!(shown["flow_templates"], json!(["reviewed-text"]));
    // The list belongs to the request that the key stands for.
    let again = fixture.post_with(&fixture.tasks(), &task(json!(["reviewed-text"])), &key).await;
    assert_eq!(again.expect(200)["id"], added["id"]);
    for other in [json!([]), json!(["article-series"]), json!(null)] {
        let other = fixture.post_with(&fixture.tasks(), &task(other), &key).await;
        other.problem(409, "idempotency_conflict");
    }
    let in_sql = "select task_id, created from dalsegno.add_task($1, 'planner', 'Plan.', idempotency_key => 'plan-1',
                         flow_templates => '{reviewed-text}')";
    let in_sql = sqlx::query_as(in_sql).bind(fixture.world.campaign.id);
    let found: (uuid::Uuid, bool) = in_sql.fetch_one(&fixture.world.pool).await.unwrap();
    assert_eq!((found.0.to_string().as_str(), found.1), (id, false));
    let plain = fixture.post(&fixture.tasks(), &task(json!(null))).await.expect(201);
    let plain = fixture.get(&format!("/v1/tasks/{}", plain["id"].as_str().unwrap())).await;
    assert!(plain.expect(200)["flow_templates"].is_null());

    let misspelt = fixture.post(&fixture.tasks(), &task(json!(["reviewed-txt"]))).await;
    assert!(misspelt.problem(404, "unknown_template").contains("did you mean `reviewed-text`?"));
    let bulk = format!("{}/bulk", fixture.tasks());
    let refused = fixture.post(&bulk, &json!([task(json!([])), task(json!(["nothing"]))])).await;
    let refused = refused.expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/1/flow_templates");
    let in_sql =
        "select dalsegno.add_task($1, 'planner', 'Plan.', flow_templates => '{Not a name}')";
    let refused = sqlx::query(in_sql).bind(fixture.world.campaign.id).execute(&fixture.world.pool);
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("flow_templates are not names of flow templates"), "{refused}");
}
