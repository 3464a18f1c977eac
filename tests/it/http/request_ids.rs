//! Request ids: in all answers, in problems, and in the log.

use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{Stream, send};
use crate::{
    app::{TestApp, TestDatabase, eventually},
    cluster::scratch_folder,
    service::Service,
};

#[tokio::test]
async fn every_answer_has_a_request_id_and_problems_contain_it() {
    let app = TestApp::start().await;
    for path in ["/livez", "/v1/campaigns", "/v1/none", "/v1/tasks/none"] {
        let reply = send(app.address, "GET", path, &[], "").await;
        assert!(reply.request_id().parse::<Uuid>().is_ok(), "{reply:?}");
        if reply.status >= 400 {
            assert_eq!(reply.json()["request_id"], reply.request_id());
        }
    }
    let ask = async |id: &str| {
        let reply = send(app.address, "GET", "/livez", &[("X-Request-Id", id)], "").await;
        reply.request_id().to_owned()
    };
    assert_eq!(ask("proxy-7.a:1").await, "proxy-7.a:1");
    for odd in ["a b", &"x".repeat(129)] {
        assert_ne!(ask(odd).await, odd);
    }
}

/// Starts a service that logs as JSON.
async fn start_logging(database: &TestDatabase, folder: &Path, filter: &str) -> Service {
    let url = database.url();
    let variables = [
        ("DATABASE_URL", &*url),
        ("DALSEGNO_LOG__FORMAT", "json"),
        ("DALSEGNO_LOG__FILTER", filter),
    ];
    Service::start(folder, &variables).await
}

/// The first line of the log with these words.
fn logged(service: &Service, words: &str) -> Option<Value> {
    let log = service.log();
    let line = log.lines().find(|line| line.contains(words));
    line.and_then(|line| serde_json::from_str(line).ok())
}

#[tokio::test]
async fn the_log_contains_the_id_of_a_failed_request() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    let service = start_logging(&database, folder.path(), "error").await;
    let break_it = "alter table dalsegno.schedules rename to gone";
    sqlx::query(break_it).execute(&database.pool().await).await.unwrap();
    let headers = [("X-Request-Id", "mine-1")];
    let reply = send(service.address, "GET", "/v1/schedules", &headers, "").await;
    assert_eq!(reply.expect(500)["request_id"], "mine-1");
    let line = logged(&service, "a request failed").unwrap_or_else(|| panic!("{}", service.log()));
    assert_eq!(line["span"]["request_id"], "mine-1", "{line}");
}

#[tokio::test]
async fn a_failed_stream_and_the_log_contain_the_id_of_its_request() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    let service = start_logging(&database, folder.path(), "error").await;
    let headers = [("X-Request-Id", "mine-2")];
    let stream = Stream::open_with(service.address, "/v1/feed", &headers).await;
    let mut stream = stream.unwrap_or_else(|reply| panic!("{reply:?}"));
    assert_eq!(stream.next().await.unwrap().event, "begin");
    let break_it = "drop table dalsegno.feed cascade";
    sqlx::query(break_it).execute(&database.pool().await).await.unwrap();
    let last = stream.next().await.unwrap();
    let problem: Value = serde_json::from_str(&last.data).unwrap();
    assert_eq!((last.event.as_str(), &problem["request_id"]), ("error", &json!("mine-2")));
    let line = logged(&service, "a request failed").unwrap_or_else(|| panic!("{}", service.log()));
    assert_eq!(line["span"]["request_id"], "mine-2", "{line}");
}

/// Its writer is a task of its own, which several requests share.
#[tokio::test]
async fn log_lines_of_an_added_task_contain_its_request_id() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    let service = start_logging(&database, folder.path(), "error,sqlx::query=debug").await;
    let post = async |path: &str, id: &str, body: Value| {
        let headers = [("X-Request-Id", id)];
        send(service.address, "POST", path, &headers, &body.to_string()).await.expect(201)
    };
    let campaign = post("/v1/campaigns", "mine-3", json!({ "name": "Spring" })).await;
    let path = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    post(&path, "mine-4", json!({ "agent": "copywriter", "prompt": "x" })).await;
    let line =
        eventually("the statement is logged", async || logged(&service, "dalsegno.store_task"))
            .await;
    assert_eq!(line["span"]["request_id"], "mine-4", "{line}");
}

#[tokio::test]
async fn the_log_names_the_task_that_its_budget_has_ended_with_code_and_reason() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    let variables = [("DATABASE_URL", &*database.url()), ("DALSEGNO_LOG__FORMAT", "json")];
    let service = Service::start(folder.path(), &variables).await;
    let post = async |path: &str, body: Value| {
        send(service.address, "POST", path, &[], &body.to_string()).await.expect(201)
    };
    let campaign = post("/v1/campaigns", json!({ "name": "Spring" })).await;
    let path = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let new = json!({ "agent": "copywriter", "prompt": "x", "budget": { "tokens": 1 } });
    let task = post(&path, new).await;
    let words = "the task failed before its call";
    let line = eventually("the failure is logged", async || logged(&service, words)).await;
    assert_eq!((&line["level"], &line["code"]), (&json!("INFO"), &json!("turn.budget")), "{line}");
    assert_eq!(line["task.id"], task["id"], "{line}");
    let error = line["error"].as_str().unwrap();
    assert!(error.contains("the budget of the task "), "{line}");
}
