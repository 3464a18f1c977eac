//! `/v1/queues`, `/v1/jobs`, `/v1/lanes` and `/v1/workers`.

use dalsegno::domain::tasks::Task;
use serde_json::{Value, json};

use super::Fixture;

/// Returns the job of a new task, and its lane escaped for a path.
async fn job(fixture: &Fixture, prompt: &str) -> (i64, String) {
    let (task, lane) = task(fixture, prompt).await;
    (task.job_id, lane)
}

async fn task(fixture: &Fixture, prompt: &str) -> (Task, String) {
    let task = fixture.world.add(prompt).await;
    let lane = format!("{}/{}/{}", task.campaign_id, task.agent, task.instance);
    let lane = lane.replace('/', "%2F");
    (task, lane)
}

async fn state(fixture: &Fixture, job: i64) -> Value {
    fixture.get(&format!("/v1/jobs/{job}")).await.expect(200)["state"].clone()
}

#[tokio::test]
async fn a_job_is_found_explained_held_released_cancelled_and_retried() {
    let fixture = Fixture::new().await;
    let (first_task, _) = task(&fixture, "Part one.").await;
    let first = first_task.job_id;
    let (second, _) = job(&fixture, "Part two.").await;
    let page = fixture.get("/v1/jobs?queue=turns&limit=1").await.expect(200);
    assert_eq!(
        (&page["items"][0]["id"], &page["next"]),
        (&json!(first), &json!(first.to_string()))
    );
    let page = fixture.get(&format!("/v1/jobs?limit=1&cursor={first}")).await.expect(200);
    assert_eq!((&page["items"][0]["id"], &page["next"]), (&json!(second), &json!(null)));
    let blocked = fixture.get("/v1/jobs?state=blocked&kind=run_turn").await.expect(200);
    assert_eq!(blocked["items"].as_array().unwrap().len(), 1, "{blocked}");

    let path = format!("/v1/jobs/{first}");
    let explained = fixture.get(&format!("{path}/explain")).await.expect(200);
    assert_eq!((&explained["job_id"], &explained["state"]), (&json!(first), &json!("ready")));
    let not_held = fixture.post(&format!("{path}/release"), &json!({})).await;
    assert!(not_held.problem(409, "conflict").contains("is not held"), "{not_held:?}");
    let held = fixture.post(&format!("{path}/hold"), &json!({ "reason": "later" })).await;
    assert_eq!(held.expect(200), json!({ "id": first, "state": "held" }));
    assert_eq!(state(&fixture, first).await, "held");
    fixture.post(&format!("{path}/release"), &json!({})).await.expect(200);
    assert_eq!(state(&fixture, first).await, "ready");
    let cancelled = fixture.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    let below = json!({ "cancelled": 0, "stopping": 0 });
    let own = json!({ "task_id": first_task.id, "cancel": "at_once", "below": below });
    assert_eq!(cancelled, json!({ "id": first, "cancel": "at_once", "task": own }));
    assert_eq!(state(&fixture, second).await, "ready");
    fixture.get(&path).await.problem(404, "unknown_job");
    let again = format!("/v1/jobs/{second}/retry");
    let retried = fixture.post(&again, &json!({})).await.expect(200);
    assert_eq!((&retried["id"], &retried["job_id"]), (&json!(second), &json!(second)));
    // The first task was cancelled with its job, so retrying the job retries the task.
    let retried = fixture.post(&format!("{path}/retry"), &json!({})).await.expect(200);
    assert_eq!((&retried["id"], &retried["state"]), (&json!(first), &json!("blocked")));
    assert_eq!(retried["task_id"], json!(first_task.id));
    assert_eq!(retried["task_state"], "queued");
    assert!(retried["job_id"].as_i64().unwrap() > second, "{retried}");
    fixture.post(&format!("{path}/retry"), &json!({})).await.problem(404, "unknown_job");
}

#[tokio::test]
async fn unknown_names_are_refused_by_name() {
    let fixture = Fixture::new().await;
    for (path, code) in [
        ("/v1/jobs/7", "unknown_job"),
        ("/v1/jobs/7/explain", "unknown_job"),
        ("/v1/lanes/none", "unknown_lane"),
        ("/v1/lanes?cursor=none", "unknown_lane"),
        ("/v1/queues/none", "unknown_queue"),
    ] {
        fixture.get(path).await.problem(404, code);
    }
    for (path, code) in [
        ("/v1/jobs/7/retry", "unknown_job"),
        ("/v1/jobs/7/cancel", "unknown_job"),
        ("/v1/jobs/7/hold", "unknown_job"),
        ("/v1/jobs/7/release", "unknown_job"),
        ("/v1/lanes/none/hold", "unknown_lane"),
        ("/v1/lanes/none/release", "unknown_lane"),
        ("/v1/queues/none/pause", "unknown_queue"),
    ] {
        fixture.post(path, &json!({})).await.problem(404, code);
    }
    fixture.get("/v1/jobs/seven").await.problem(400, "bad_id");
    fixture.post("/v1/jobs/seven/retry", &json!({})).await.problem(400, "bad_id");
    fixture.get("/v1/jobs?state=gone").await.problem(400, "bad_query");
}

#[tokio::test]
async fn a_lane_is_held_and_released() {
    let fixture = Fixture::new().await;
    let (first, lane) = job(&fixture, "Part one.").await;
    let (second, _) = job(&fixture, "Part two.").await;
    let path = format!("/v1/lanes/{lane}");
    let shown = fixture.get(&path).await.expect(200);
    let members: Vec<&Value> =
        shown["members"].as_array().unwrap().iter().map(|member| &member["id"]).collect();
    assert_eq!(members, [&json!(first), &json!(second)]);
    assert_eq!(fixture.get("/v1/lanes?held=true").await.expect(200)["items"], json!([]));
    fixture.post(&format!("{path}/hold"), &json!({ "reason": "a look" })).await.expect(200);
    let held = fixture.get("/v1/lanes?held=true").await.expect(200);
    assert_eq!(held["items"], json!([shown["lane"]]));
    assert_eq!(fixture.get(&path).await.expect(200)["held"], "a look");
    fixture.post(&format!("{path}/release"), &json!({})).await.expect(200);
    assert_eq!(fixture.get(&path).await.expect(200)["held"], json!(null));
    assert_eq!(fixture.get("/v1/lanes").await.expect(200)["items"], json!([shown["lane"]]));
}

#[tokio::test]
async fn a_queue_and_a_group_are_paused_and_resumed() {
    let fixture = Fixture::new().await;
    job(&fixture, "Part one.").await;
    let turns = fixture.get("/v1/queues/turns").await.expect(200);
    assert_eq!((&turns["ready"], &turns["paused_at"]), (&json!(1), &json!(null)));
    fixture.post("/v1/queues/turns/pause", &json!({ "reason": "a look" })).await.expect(200);
    let queues = fixture.get("/v1/queues").await.expect(200);
    assert_eq!(queues["items"][0]["pause_reason"], "a look", "{queues}");
    let resumed = fixture.post("/v1/queues/turns/resume", &json!({})).await.expect(200);
    assert_eq!(resumed, json!({ "resumed": "turns", "was_paused": true }));
    let resumed = fixture.post("/v1/queues/turns/resume", &json!({})).await.expect(200);
    assert_eq!(resumed["was_paused"], false);

    // Before its first job and its first worker.
    fixture.post("/v1/queues/upkeep/pause", &json!({})).await.expect(200);

    let group = format!("/v1/groups/{}", fixture.world.campaign.id);
    fixture.post(&format!("{group}/pause"), &json!({})).await.expect(200);
    let resumed = fixture.post(&format!("{group}/resume"), &json!({})).await.expect(200);
    assert_eq!(resumed["was_paused"], true);
    let workers = async |query: &str| fixture.get(&format!("/v1/workers{query}")).await.expect(200);
    assert_eq!(workers("").await, json!({ "items": [], "next": null }));
    let three = "insert into dalsegno.workers (id, started_at, lease_until, slots, queues, host, pid, version, kinds)
                 select gen_random_uuid(), '2026-11-20 12:00+00'::timestamptz + (n / 2) * interval '1 hour', now(), 1, '{}', 'h', n, 'v', '{}'
                   from generate_series(1, 3) as n";
    sqlx::query(three).execute(&fixture.app.pool).await.unwrap();
    let all = workers("").await["items"].clone();
    let mut query = "?limit=1".to_owned();
    for place in 0..3 {
        let page = workers(&query).await;
        assert_eq!((&page["items"][0], page["next"].is_null()), (&all[place], place == 2));
        query = format!("?limit=1&cursor={}", page["next"].as_str().unwrap_or_default());
    }
}
