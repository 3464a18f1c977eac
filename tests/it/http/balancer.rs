//! A load balancer in front of the database that accepts connections and closes them.

use dalsegno::domain::amount::Limit;
use serde_json::json;

use super::Fixture;
use crate::{
    app::{TestApp, TestDatabase},
    conversations::world::World,
    queue::proxy::Proxy,
};

#[tokio::test]
async fn a_balancer_that_accepts_and_closes_is_retryable() {
    let mut database = TestDatabase::migrated().await;
    let proxy = Proxy::start(&database.options).await;
    database.options = proxy.url_with_tls_preferred(&database.options).parse().unwrap();
    let app = TestApp::start_with(database, &[]).await;
    let world = World::over(app.pool.clone(), Limit::default()).await;
    let fixture = Fixture { app, world };
    let task = json!({ "agent": "copywriter", "prompt": "Part one." });
    let added = fixture.post(&fixture.tasks(), &task).await.expect(201);
    let one = format!("/v1/tasks/{}", added["id"].as_str().unwrap());
    let (cancel, explain) = (format!("{one}/cancel"), format!("{one}/explain"));
    proxy.close();
    for _ in 0..4 {
        let replies = [
            fixture.get("/v1/tasks").await,
            fixture.get("/v1/campaigns").await,
            fixture.get("/v1/sessions").await,
            fixture.get(&one).await,
            fixture.get(&explain).await,
            fixture.post(&fixture.tasks(), &task).await,
            fixture.post(&cancel, &json!({})).await,
            fixture.post("/v1/campaigns", &json!({ "name": "another" })).await,
        ];
        for reply in replies {
            reply.problem(503, "database_unreachable");
            assert_eq!(reply.json()["retryable"], true, "{reply:?}");
        }
    }
    proxy.resume_traffic();
    fixture.get(&one).await.expect(200);
    fixture.post(&fixture.tasks(), &task).await.expect(201);
}
