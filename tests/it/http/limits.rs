//! Limits of the service: length of headers, length of the queue.

use futures_util::future::join_all;
use serde_json::json;

use super::Fixture;
use crate::{app::eventually, http::client::send};

#[tokio::test]
async fn an_oversized_request_head_is_a_problem_document() {
    let fixture = Fixture::new().await;
    let long = "x".repeat(20_000);
    let header = [("X-Long", long.as_str())];
    let reply = send(fixture.app.address, "GET", "/v1/tasks", &header, "").await;
    let detail = reply.problem(431, "headers_too_large");
    assert!(detail.contains("http.max_header_bytes"), "{detail}");
    fixture.get(&format!("/v1/tasks?agent={}", &long[..9_000])).await.problem(414, "uri_too_long");
    fixture.get(&format!("/v1/tasks?agent={}", &long[..4_000])).await.expect(200);
}

/// Another transaction holds the table, as a long read of it would hold a connection.
#[tokio::test]
async fn id_lookups_have_few_connections_and_a_short_timeout() {
    let fixture = Fixture::new().await;
    let mut open = fixture.world.pool.begin().await.unwrap();
    sqlx::query("lock table dalsegno.flows in access exclusive mode")
        .execute(&mut *open)
        .await
        .unwrap();
    let finds = join_all((0..12).map(|_| fixture.get("/v1/ids?noun=flow&text=00000000dead")));
    let others = async {
        eventually("some requests wait for the table", async || {
            let wait = "select count(*) from pg_locks where not granted and relation = 'dalsegno.flows'::regclass";
            let n: i64 = sqlx::query_scalar(wait).fetch_one(&mut *open).await.unwrap();
            (n >= 2).then_some(())
        })
        .await;
        for _ in 0..12 {
            fixture.get("/v1/tasks").await.expect(200);
        }
    };
    let (refused, ()) = tokio::join!(finds, others);
    let details: Vec<String> =
        refused.iter().map(|reply| reply.problem(503, "database_busy")).collect();
    assert!(details.iter().any(|it| it.contains("give the whole id")), "{details:?}");
    open.rollback().await.unwrap();
    fixture.get("/v1/ids?noun=flow&text=00000000dead").await.problem(404, "unknown_id");
}

#[tokio::test]
async fn bodies_of_bulk_requests_may_be_as_long_as_a_list() {
    let fixture = Fixture::with(&[("http.max_body_bytes", "2000")]).await;
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let long = "x".repeat(3_000);
    let renamed = json!({ "name": "x", "brief": long });
    fixture.post("/v1/campaigns", &renamed).await.problem(413, "body_too_large");
    // A task may have files in its JSON.
    let task = json!({ "agent": "copywriter", "prompt": "x".repeat(900), "metadata": { "x": "x".repeat(1_500) } });
    fixture.post(&fixture.tasks(), &task).await.expect(201);
    let item = json!({ "kind": "record", "name": "prices", "title": "t", "body": long });
    let import = json!({ "items": [item] });
    let imported = fixture.post(&format!("{campaign}/memory/import"), &import).await.expect(200);
    assert_eq!(imported["created"], 1);
    let parent = fixture.world.add("Plan.").await.id;
    let done = "update dalsegno.tasks set state = 'done', result = 'x', started_at = now(), ended_at = now() where id = $1";
    sqlx::query(done).bind(parent).execute(&fixture.app.pool).await.unwrap();
    let child = json!({ "agent": "copywriter", "prompt": long });
    let handed = json!({ "children": [child], "continuation": { "prompt": "Go on." } });
    fixture.post(&format!("/v1/tasks/{parent}/children"), &handed).await.expect(201);
}

#[tokio::test]
async fn a_full_queue_refuses_tasks_until_it_is_shorter() {
    let fixture = Fixture::with(&[("queue.max_waiting", "4")]).await;
    let ask = json!({ "agent": "copywriter", "prompt": "x" });
    let bulk = format!("{}/bulk", fixture.tasks());
    fixture.post(&bulk, &json!([ask, ask])).await.expect(201);
    fixture.post(&bulk, &json!([ask, ask, ask])).await.problem(503, "queue_full");
    // Refused and existing tasks take no space.
    let key = [("Idempotency-Key", "k")];
    for _ in 0..3 {
        let bad = json!({ "agent": "copywriter", "prompt": "x", "priority": -1 });
        fixture.post(&fixture.tasks(), &bad).await.problem(422, "bad_argument");
        let unknown = format!("/v1/campaigns/{}/tasks", uuid::Uuid::nil());
        fixture.post(&unknown, &ask).await.problem(404, "unknown_campaign");
    }
    fixture.post_with(&fixture.tasks(), &ask, &key).await.expect(201);
    for _ in 0..3 {
        fixture.post_with(&fixture.tasks(), &ask, &key).await.expect(200);
    }
    let last = fixture.post(&fixture.tasks(), &ask).await.expect(201);
    let full = fixture.post(&fixture.tasks(), &ask).await;
    let detail = full.problem(503, "queue_full");
    assert!(detail.contains("queue.max_waiting"), "{detail}");
    assert!(full.head.contains("retry-after: 10"), "{full:?}");
    assert_eq!(full.json()["retryable"], true);
    // Reads are served.
    assert_eq!(fixture.get("/v1/tasks").await.expect(200)["items"].as_array().unwrap().len(), 4);
    let cancel = format!("/v1/tasks/{}/cancel", last["id"].as_str().unwrap());
    fixture.post(&cancel, &json!({})).await.expect(200);
    eventually("the queue has space again", async || {
        (fixture.post(&fixture.tasks(), &ask).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn flows_and_child_tasks_count_towards_the_queue_limit() {
    let fixture = Fixture::with(&[("queue.max_waiting", "5")]).await;
    let ask = json!({ "agent": "copywriter", "prompt": "x" });
    let task = fixture.post(&fixture.tasks(), &ask).await.expect(201);
    let done = "update dalsegno.tasks set state = 'done', result = 'x', started_at = now(), ended_at = now() where id = $1::uuid";
    sqlx::query(done).bind(task["id"].as_str()).execute(&fixture.app.pool).await.unwrap();
    let flows = format!("/v1/campaigns/{}/flows", fixture.world.campaign.id);
    let start = json!({ "template": "reviewed-text", "inputs": { "task": "Write." } });
    let flow = fixture.post(&flows, &start).await.expect(201);
    // Three of the flow, and the job of the task above.
    let children = format!("/v1/tasks/{}/children", task["id"].as_str().unwrap());
    let handed = json!({ "children": [ask], "continuation": { "prompt": "Go on." } });
    fixture.post(&children, &handed).await.problem(503, "queue_full");
    fixture.post(&flows, &start).await.problem(503, "queue_full");
    fixture.post(&fixture.tasks(), &ask).await.expect(201);
    fixture.post(&fixture.tasks(), &ask).await.problem(503, "queue_full");
    // A flow retry that replaces open tasks does not lengthen the queue; one of ended tasks does.
    let at = format!("/v1/flows/{}", flow["id"].as_str().unwrap());
    let retry = (format!("{at}/retry"), json!({ "from": "write" }));
    fixture.post(&retry.0, &retry.1).await.expect(200);
    fixture.post(&format!("{at}/cancel"), &json!({ "reason": "no" })).await.expect(200);
    eventually("the queue has space again", async || {
        (fixture.post(&fixture.tasks(), &ask).await.status == 201).then_some(())
    })
    .await;
    fixture.post(&retry.0, &retry.1).await.problem(503, "queue_full");
}
