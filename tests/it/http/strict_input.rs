//! Ambiguous, unknown or too long input is refused on all routes before anything is done.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{Fixture, client::send, routes::registered};
use crate::app::SOON;

fn path_of(template: &str) -> String {
    let nil = uuid::Uuid::nil().to_string();
    let mut path = template.to_owned();
    for (name, value) in
        [("{id}", &*nil), ("{name}", "x"), ("{item}", &nil), ("{number}", "1"), ("{fact}", "1")]
    {
        path = path.replace(name, value);
    }
    path
}

#[tokio::test]
async fn every_route_refuses_unknown_query_parameters() {
    let fixture = Fixture::new().await;
    for (method, template) in registered(&fixture.app.router) {
        let path = path_of(&template);
        for query in ["dry_run=true", "%64ry_run=true", "limit=1&dry_run", "dry_run=1&limit=1"] {
            let body = if method == "GET" { "" } else { "{}" };
            let path = format!("{path}?{query}");
            let reply = send(fixture.app.address, method, &path, &[], body).await;
            let detail = reply.problem(400, "bad_query");
            assert!(detail.contains("unknown query parameter `"), "{method} {path}: {detail}");
        }
    }
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let path = format!("{}?dry_run=true", fixture.tasks());
    let detail = fixture.post(&path, &ask).await.problem(400, "bad_query");
    assert!(detail.contains("`dry_run`: this route has none"), "{detail}");
    let detail = fixture.get("/v1/workers?stat=x").await.problem(400, "bad_query");
    assert!(detail.contains("`stat`: this route has `cursor`, `limit`"), "{detail}");
    assert_eq!(fixture.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn every_route_refuses_a_second_value_of_a_significant_header() {
    let fixture = Fixture::new().await;
    let host = fixture.app.address.to_string();
    let origin = format!("http://{host}");
    for (method, template) in registered(&fixture.app.router) {
        for (name, one, other) in [
            ("Host", &*host, "localhost"),
            ("Origin", &origin, &origin),
            ("Idempotency-Key", "order-17", "order-18"),
            ("Authorization", "Bearer x", "Bearer y"),
            ("Content-Type", "application/json", "text/plain"),
            ("Last-Event-ID", "1", "2"),
        ] {
            let body = if method == "GET" { "" } else { "{}" };
            let headers = [(name, one), (name, other)];
            let path = path_of(&template);
            let reply = send(fixture.app.address, method, &path, &headers, body).await;
            let detail = reply.problem(400, "duplicate_header");
            assert!(detail.contains(&name.to_lowercase()), "{method} {path}: {detail}");
        }
    }
}

/// Returns the first response line for a request that waits for `100 Continue`.
async fn expect_continue(fixture: &Fixture, method: &str, path: &str, n_bytes: usize) -> String {
    let address = fixture.app.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {n_bytes}\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let n_read = tokio::time::timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&buffer[..n_read]).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn no_route_reads_an_oversized_body() {
    let fixture = Fixture::new().await;
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let mut n_routes = 0;
    for (method, template) in registered(&fixture.app.router) {
        if document["paths"][&template][method.to_lowercase()].get("requestBody").is_none() {
            continue;
        }
        n_routes += 1;
        let path = path_of(&template);
        let line = expect_continue(&fixture, method, &path, 99_000_000).await;
        assert!(!line.contains("100"), "{method} {path}: {line}");
        assert!(line.starts_with("HTTP/1.1 4"), "{method} {path}: {line}");
    }
    assert!(n_routes > 20, "{n_routes}");
    let line = expect_continue(&fixture, "POST", "/v1/campaigns", 99_000_000).await;
    assert_eq!(line, "HTTP/1.1 413 Payload Too Large");
    let line = expect_continue(&fixture, "POST", "/v1/campaigns", 20).await;
    assert_eq!(line, "HTTP/1.1 100 Continue");
    // The bulk route has a limit of its own.
    let bulk = format!("{}/bulk", fixture.tasks());
    assert_eq!(expect_continue(&fixture, "POST", &bulk, 60_000_000).await, "HTTP/1.1 100 Continue");
}

#[tokio::test]
async fn a_body_is_refused_where_none_is_expected() {
    let fixture = Fixture::new().await;
    let (ask, mut n_routes) = (json!({ "agent": "copywriter" }).to_string(), 0);
    for entry in dalsegno::operations::ALL.iter().filter(|entry| !entry.spec.method.has_body()) {
        let (method, path) = (entry.spec.method.as_str(), path_of(entry.spec.path));
        n_routes += 1;
        let reply = send(fixture.app.address, method, &path, &[], &ask).await;
        let detail = reply.problem(400, "bad_body");
        assert!(detail.contains("takes no body"), "{method} {path}: {detail}");
    }
    assert!(n_routes > 20, "{n_routes}");
    assert_eq!(
        fixture.get("/v1/campaigns").await.expect(200)["items"].as_array().unwrap().len(),
        1
    );
}
