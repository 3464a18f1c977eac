//! Writing requests while another system's transaction holds their locks.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Fixture, client::send};
use crate::{app::SOON, conversations::world::TurnSettings};

#[tokio::test]
async fn every_writing_request_gives_up_on_a_lock_of_another_transaction() {
    let fixture = Fixture::new().await;
    let pool = &fixture.world.pool;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let task: String =
        sqlx::query_scalar("select id::text from dalsegno.tasks").fetch_one(pool).await.unwrap();
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let start = json!({ "template": "reviewed-text", "inputs": { "task": "Write." } });
    let flow = fixture.post(&format!("{campaign}/flows"), &start).await.expect(201);
    let flow = format!("/v1/flows/{}", flow["id"].as_str().unwrap());
    let hook = fixture
        .post("/v1/webhooks", &json!({ "url": "https://example.com/hooks" }))
        .await
        .expect(201);
    let hook = format!("/v1/webhooks/{}", hook["id"].as_str().unwrap());
    fixture.post(&format!("{hook}/test"), &json!({})).await.expect(202);
    let ask = json!({ "agent": "copywriter", "prompt": "x" });
    let requests: Vec<(&str, String, Value)> = vec![
        (
            "POST",
            format!("/v1/tasks/{task}/children"),
            json!({ "children": [ask], "continuation": { "prompt": "Go on." } }),
        ),
        ("POST", format!("{campaign}/posts"), json!({ "text": "Who writes part two?" })),
        ("POST", format!("{campaign}/flows"), start),
        ("POST", format!("{flow}/pause"), json!({})),
        ("POST", format!("{flow}/retry"), json!({ "from": "write" })),
        ("POST", format!("{flow}/cancel"), json!({})),
        ("POST", format!("{campaign}/agents/reset"), json!({})),
        ("POST", format!("{campaign}/agents/copywriter/reset"), json!({})),
        ("POST", format!("{hook}/replay"), json!({ "since": "2026-11-01T00:00:00Z" })),
        ("DELETE", hook, Value::Null),
    ];
    let mut open = pool.begin().await.unwrap();
    for table in ["campaigns", "sessions", "flows", "tasks", "webhooks", "webhook_deliveries"] {
        let hold = format!("select from dalsegno.{table} for update");
        sqlx::query(sqlx::AssertSqlSafe(hold)).execute(&mut *open).await.unwrap();
    }
    let address = fixture.app.address;
    // Few enough that each has a place.
    for few in requests.chunks(3) {
        let asked = few.iter().map(async |(method, path, body)| {
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let refused = timeout(SOON, send(address, method, path, &[], &body)).await;
            let refused = refused.unwrap_or_else(|_| panic!("{path} waits for the transaction"));
            assert_eq!(refused.status, 503, "{path}: {refused:?}");
            let detail = refused.problem(503, "database_busy");
            assert!(detail.contains("another transaction holds a lock"), "{path}: {detail}");
        });
        join_all(asked).await;
    }
    // Many more than there are connections.
    let held: Vec<_> = (0..5)
        .flat_map(|_| requests.clone())
        .map(|(method, path, body)| {
            let body = if body.is_null() { String::new() } else { body.to_string() };
            tokio::spawn(async move {
                (path.clone(), timeout(SOON, send(address, method, &path, &[], &body)).await)
            })
        })
        .collect();
    for _ in 0..5 {
        timeout(SOON, fixture.get("/v1/tasks")).await.unwrap().expect(200);
        timeout(SOON, fixture.get("/readyz")).await.unwrap().expect(200);
    }
    for held in held {
        let (path, refused) = held.await.unwrap();
        let refused = refused.unwrap_or_else(|_| panic!("{path} waits for the transaction"));
        assert_eq!(refused.status, 503, "{path}: {refused:?}");
        refused.problem(503, "database_busy");
        assert_eq!(refused.json()["retryable"], true);
    }
    open.rollback().await.unwrap();
    for (method, path, body) in requests.iter().filter(|(_, path, _)| !path.contains("/flows")) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = send(address, method, path, &[], &body).await;
        assert!((200..300).contains(&reply.status), "{path}: {reply:?}");
    }
}
