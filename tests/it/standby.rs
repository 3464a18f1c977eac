//! A service whose database is a standby, until the standby is promoted.

use std::fs;

use dalsegno::db::{self, embedded};
use serde_json::json;
use sqlx::{ConnectOptions as _, PgPool};

use crate::{
    app::{eventually, execute, get},
    cluster::scratch_folder,
    embedded::support::EmbeddedSetup,
    http::client::send,
    service::{SERVE, Service},
};

#[tokio::test]
async fn a_service_on_a_standby_is_not_ready_until_it_is_promoted() {
    is_not_ready_until_promoted(&[]).await;
}

#[tokio::test]
async fn a_service_that_does_not_migrate_waits_for_the_promotion_too() {
    is_not_ready_until_promoted(&["--set", "database.migrate_on_start=false"]).await;
}

async fn is_not_ready_until_promoted(settings: &[&str]) {
    let (place, folder) = (EmbeddedSetup::new(), scratch_folder());
    let postgres = embedded::start(&place.config).await.unwrap();
    let pool = PgPool::connect_with(postgres.connect_options()).await.unwrap();
    db::migrate(&pool).await.unwrap();
    pool.close().await;
    postgres.stop().await.unwrap();
    fs::write(place.cluster().join("standby.signal"), "").unwrap();
    let postgres = embedded::start(&place.config).await.unwrap();
    let options = postgres.connect_options();

    let arguments = [&SERVE[..], settings].concat();
    let url = options.to_url_lossy().to_string();
    let mut service = Service::begin(folder.path(), &arguments, &[("DATABASE_URL", &url)]);
    service.listening().await;
    let read_only = async || {
        let answer = get(service.address, "/readyz").await.ok()?;
        assert_ne!(answer.status, 200, "{answer:?}");
        answer.body.contains("database_read_only").then_some(())
    };
    eventually("the service reports why it is not ready", read_only).await;
    let create = async || {
        let body = json!({ "name": "Spring" }).to_string();
        send(service.address, "POST", "/v1/campaigns", &[], &body).await
    };
    create().await.problem(503, "database_read_only");
    assert_eq!(get(service.address, "/livez").await.unwrap().status, 200);

    execute(&options, "select pg_promote()").await;
    service.ready().await;
    let campaign = create().await.expect(201);
    let tasks = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." }).to_string();
    let task = send(service.address, "POST", &tasks, &[], &ask).await.expect(201);
    let task = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    eventually("the worker runs jobs", async || {
        let shown = send(service.address, "GET", &task, &[], "").await.expect(200);
        (shown["state"] == "done").then_some(())
    })
    .await;
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
    postgres.stop().await.unwrap();
}
