//! Request ids: in all answers, in problems, and in the log.

use serde_json::Value;
use uuid::Uuid;

use super::client::send;
use crate::{
    app::{TestApp, TestDatabase},
    cluster::scratch_folder,
    service::Service,
};

#[tokio::test]
async fn every_answer_has_a_request_id_and_problems_name_it() {
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

#[tokio::test]
async fn the_log_names_the_request_that_failed() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    let variables = [
        ("DATABASE_URL", &*database.url()),
        ("DALSEGNO_LOG__FORMAT", "json"),
        ("DALSEGNO_LOG__FILTER", "error"),
    ];
    let service = Service::start(folder.path(), &variables).await;
    let break_it = "alter table dalsegno.schedules rename to gone";
    sqlx::query(break_it).execute(&database.pool().await).await.unwrap();
    let headers = [("X-Request-Id", "mine-1")];
    let reply = send(service.address, "GET", "/v1/schedules", &headers, "").await;
    assert_eq!(reply.expect(500)["request_id"], "mine-1");
    let log = service.log();
    let line = log.lines().find(|line| line.contains("a request failed"));
    let line: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{log}"))).unwrap();
    assert_eq!(line["span"]["request_id"], "mine-1", "{line}");
}
