//! Probes, the metrics page, and errors as problem+json.

use axum::{body::Body, http::Request};
use dalsegno::db;
use serde_json::Value;
use tower::Service as _;

use crate::app::{TestApp, TestDatabase, eventually, execute};

#[tokio::test]
async fn a_migrated_service_is_alive_and_ready() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/livez").await.status, 200);
    let ready = app.get("/readyz").await;
    assert_eq!((ready.status, ready.body.contains(r#""state":"current""#)), (200, true));
    app.stop().await;
}

#[tokio::test]
async fn without_its_schema_a_service_is_alive_but_not_ready() {
    let app = TestApp::start_on(TestDatabase::empty().await).await;
    let ready = app.get("/readyz").await;
    assert_eq!(ready.status, 503);
    let problem: Value = serde_json::from_str(&ready.body).unwrap();
    assert_eq!(problem["code"], "migrations_pending");
    assert_eq!(problem["retryable"], true);
    assert!(ready.head.contains("application/problem+json"));
    assert_eq!(app.get("/livez").await.status, 200);
    db::migrate(&app.pool).await.unwrap();
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_lost_database_is_not_ready_and_comes_back() {
    let database = TestDatabase::migrated().await;
    let (admin, name) = (database.options.clone().database("postgres"), database.name.clone());
    let app = TestApp::start_on(database).await;
    assert_eq!(app.get("/readyz").await.status, 200);
    // New connections are refused, and existing ones are terminated.
    execute(&admin, &format!("alter database {name} allow_connections false")).await;
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity where datname = ";
    execute(&admin, &format!("{kill} '{name}'")).await;
    // A good answer is cached for a second.
    let is_lost = async || (app.get("/readyz").await.status == 503).then_some(());
    eventually("the missing database is detected", is_lost).await;
    assert_eq!(app.get("/livez").await.status, 200);
    execute(&admin, &format!("alter database {name} allow_connections true")).await;
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_read_only_database_is_not_ready() {
    let database = TestDatabase::migrated().await;
    let (admin, name) = (database.options.clone().database("postgres"), database.name.clone());
    let read_only = async |is_on: &str| {
        let set = format!("alter database {name} set default_transaction_read_only = {is_on}");
        execute(&admin, &set).await;
        let kill = "select pg_terminate_backend(pid) from pg_stat_activity where datname = ";
        execute(&admin, &format!("{kill} '{name}'")).await;
    };
    read_only("on").await;
    let app = TestApp::start_on(database).await;
    let answer = app.get("/readyz").await;
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, &problem["code"]), (503, &Value::from("database_read_only")));
    assert_eq!(problem["retryable"], true);
    assert_eq!(app.get("/livez").await.status, 200);
    read_only("off").await;
    let ready = async || (app.get("/readyz").await.status == 200).then_some(());
    eventually("the service is ready", ready).await;
    read_only("on").await;
    let missed = async || (app.get("/readyz").await.status == 503).then_some(());
    eventually("the service is not ready any more", missed).await;
}

#[tokio::test]
async fn frequent_probes_do_not_load_the_database() {
    let app = TestApp::start().await;
    let all = futures_util::future::join_all((0..50).map(|_| app.get("/readyz"))).await;
    assert!(all.iter().all(|answer| answer.status == 200));
    // A lock on this table blocks the probe's statement.
    let mut tx = app.pool.begin().await.unwrap();
    assert_eq!(app.get("/readyz").await.status, 200);
    sqlx::query("lock table dalsegno.migrations").execute(&mut *tx).await.unwrap();
    assert_eq!(app.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_service_on_a_newer_schema_is_ready() {
    let app = TestApp::start().await;
    let newer =
        "insert into dalsegno.migrations (version, description, success, checksum, execution_time)
                 values (99990101000000, 'from the future', true, '', 0)";
    sqlx::query(newer).execute(&app.pool).await.unwrap();
    let ready = app.get("/readyz").await;
    assert_eq!((ready.status, ready.body.contains("newer")), (200, true));
    // An older binary may run `migrate up` beside it.
    db::migrate(&app.pool).await.unwrap();
}

#[tokio::test]
async fn metrics_contain_the_build_version() {
    let app = TestApp::start().await;
    let metrics = app.get("/metrics").await;
    assert!(metrics.body.contains("dalsegno_build_info{version="), "{}", metrics.body);
}

#[tokio::test]
async fn an_unknown_path_is_a_problem_document() {
    let app = TestApp::start().await;
    let answer = app.get("/v1/nothing").await;
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, &problem["code"]), (404, &Value::from("not_found")));
    assert_eq!(problem["retryable"], false);
}

#[tokio::test]
async fn a_stopping_service_is_not_ready_and_stops() {
    let app = TestApp::start().await;
    let address = app.address;
    app.shutdown.soft.cancel();
    // Bypasses the listener, which is closed: requests on open connections still arrive.
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let answer = app.router.clone().call(request).await.unwrap();
    assert_eq!(answer.status(), 503);
    let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["code"], "shutting_down");
    app.stop().await;
    assert!(crate::app::get(address, "/livez").await.is_err());
}
