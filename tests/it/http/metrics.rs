//! Metrics of requests.

use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::client::{Stream, send};
use crate::{
    app::{eventually, get},
    service::Service,
};

#[tokio::test]
async fn requests_are_counted_by_the_template_of_their_route() {
    let folder = tempfile::tempdir().unwrap();
    // Its tasks wait, and so do requests that wait for their end.
    let service = Service::start(folder.path(), &[("DALSEGNO_WORKER__TURNS_SLOTS", "0")]).await;
    let address = service.address;
    let metrics = async || get(address, "/metrics").await.unwrap().body;
    let campaign = send(address, "POST", "/v1/campaigns", &[], r#"{"name":"Harbour"}"#).await;
    let tasks = format!("/v1/campaigns/{}/tasks", campaign.expect(201)["id"].as_str().unwrap());
    let body = json!({ "agent": "copywriter", "prompt": "Write." }).to_string();
    let task = send(address, "POST", &tasks, &[], &body).await.expect(201);
    let id = task["id"].as_str().unwrap();
    let path = format!("/v1/tasks/{id}");
    for (method, path, status) in [
        ("GET", path.as_str(), 200),
        ("GET", path.as_str(), 200),
        ("GET", "/v1/tasks/019aa2f1-0000-7000-8000-000000000000", 404),
        ("GET", "/v1/harbour", 404),
        ("GET", &format!("/v1/tides/{id}"), 404),
        ("BREW", path.as_str(), 405),
    ] {
        let reply = send(address, method, path, &[], "").await;
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    let stream = Stream::open(address, &format!("{path}/events"), None).await.unwrap();
    let mut waiting = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path}?wait=60s HTTP/1.1\r\nHost: {address}\r\n\r\n");
    waiting.write_all(request.as_bytes()).await.unwrap();
    let show = async |lines: &[&str]| {
        eventually(&format!("{lines:?}"), async || {
            let metrics = metrics().await;
            lines.iter().all(|line| metrics.lines().any(|it| it == *line)).then_some(())
        })
        .await;
    };
    // The request for the page is in flight, too.
    show(&["dalsegno_http_requests_in_flight 2", "dalsegno_http_event_streams 1"]).await;
    drop((waiting, stream));
    show(&[
        "dalsegno_http_requests_in_flight 1",
        "dalsegno_http_event_streams 0",
        r#"dalsegno_http_requests_total{method="GET",route="/v1/tasks/{id}",status="499"} 1"#,
    ])
    .await;
    show(&[
        r#"dalsegno_http_requests_total{method="POST",route="/v1/campaigns",status="201"} 1"#,
        r#"dalsegno_http_requests_total{method="GET",route="/v1/tasks/{id}",status="200"} 2"#,
        r#"dalsegno_http_requests_total{method="GET",route="/v1/tasks/{id}",status="404"} 1"#,
        r#"dalsegno_http_requests_total{method="GET",route="/v1/tasks/{id}/events",status="200"} 1"#,
        r#"dalsegno_http_requests_total{method="GET",route="unmatched",status="404"} 2"#,
        r#"dalsegno_http_requests_total{method="other",route="/v1/tasks/{id}",status="405"} 1"#,
        r#"dalsegno_http_request_duration_seconds_count{method="GET",route="/v1/tasks/{id}"} 4"#,
    ])
    .await;
    let metrics = metrics().await;
    for text in [id, "harbour", "tides", "BREW"] {
        assert!(!metrics.contains(text), "{text} is in a label");
    }
}
