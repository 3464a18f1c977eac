//! Scopes of all routes.

use std::collections::BTreeSet;

use dalsegno::http::scopes;
use serde_json::{Value, json};

use super::{Fixture, key_setup::KeySetup, routes::registered};

const SCOPES: [&str; 5] = ["read", "enqueue", "operate", "admin", "mcp"];

/// Returns the scopes for a route, by rules that are independent of the code.
fn allowed_scopes(method: &str, path: &str) -> &'static [&'static str] {
    let is_admins = ["/v1/keys", "/v1/audit", "/v1/sign-ins", "/v1/doctor", "/v1/installation"]
        .iter()
        .any(|start| path.starts_with(start));
    match method {
        _ if is_admins => &["admin"],
        _ if path.starts_with("/mcp/") => &["mcp", "admin"],
        // They show texts of campaigns, and change nothing.
        _ if path.ends_with("/preview") || path.ends_with("/estimate") => {
            &["read", "operate", "admin"]
        }
        // Addresses of receivers may contain tokens.
        "GET" if path.starts_with("/v1/webhooks") || path.ends_with("/webhook-message") => {
            &["operate", "admin"]
        }
        "GET" if path == "/v1/ids" || path.starts_with("/v1/tasks/{id}") => {
            &["read", "enqueue", "operate", "admin"]
        }
        "GET" => &["read", "operate", "admin"],
        "POST"
            if path.ends_with("/tasks")
                || path.ends_with("/tasks/bulk")
                || path.ends_with("/flows")
                || path.ends_with("/children") =>
        {
            &["enqueue", "operate", "admin"]
        }
        _ => &["operate", "admin"],
    }
}

#[tokio::test]
async fn the_scope_table_lists_exactly_the_routes() {
    let fixture = Fixture::new().await;
    let routes = registered(&fixture.app.router);
    for (method, path) in &routes {
        let has_line = scopes::need(method, path).is_some();
        assert!(has_line, "{method} {path} needs a line in src/http/scopes.rs");
    }
    let mut lines = BTreeSet::new();
    for (method, path, _) in scopes::needs() {
        assert!(lines.insert((method, path.to_owned())), "{method} {path} has two lines");
    }
    let gone: Vec<_> = lines.difference(&routes).collect();
    assert!(gone.is_empty(), "lines of routes that do not exist: {gone:?}");
}

#[tokio::test]
async fn every_route_admits_exactly_the_keys_with_its_scope() {
    let setup = KeySetup::new().await;
    let mut keys = Vec::new();
    for scope in SCOPES {
        keys.push((scope, setup.create_key(scope, &[scope]).await.1));
    }
    for (method, template) in registered(&setup.fixture.app.router) {
        let unknown = "00000000-0000-0000-0000-000000000000";
        let path = template.replace("{id}", unknown).replace("{name}", "stranger");
        // The feed would not end otherwise.
        let path = if path == "/v1/feed" { format!("{path}?after=none") } else { path };
        let reply = setup.ask(None, method, &path, &json!({})).await;
        if ["/livez", "/readyz"].contains(&path.as_str()) {
            assert_eq!(reply.status, 200, "{reply:?}");
            continue;
        }
        reply.problem(401, "unauthenticated");
        assert!(reply.head.contains("www-authenticate: Bearer"), "{method} {path}: {reply:?}");
        let may = allowed_scopes(method, &template);
        for (scope, key) in &keys {
            let reply = setup.ask(Some(key), method, &path, &json!({})).await;
            if may.contains(scope) {
                let is_let_in = ![401, 403, 429, 500, 503].contains(&reply.status);
                assert!(is_let_in, "{scope} may {method} {path}: {reply:?}");
                continue;
            }
            let detail = reply.problem(403, "missing_scope");
            assert!(detail.contains(&format!("`{}`", may[0])), "{method} {path}: {detail}");
            assert!(reply.head.contains("insufficient_scope"), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_route_reveals_nothing_without_a_key() {
    let setup = KeySetup::new().await;
    setup.ask(None, "GET", "/v1/nothing", &Value::Null).await.problem(401, "unauthenticated");
    let (_, mcp) = setup.create_key("mcp", &["mcp"]).await;
    setup.get(&mcp, "/v1/nothing").await.problem(404, "not_found");
    // An unsupported method has no line in the table, so it needs `admin`.
    setup.ask(Some(&mcp), "DELETE", "/v1/tasks", &json!({})).await.problem(403, "missing_scope");
    setup.admin("DELETE", "/v1/tasks", &json!({})).await.problem(405, "method_not_allowed");
    let reply = setup.ask(None, "HEAD", "/v1/tasks", &Value::Null).await;
    assert_eq!(reply.status, 401, "{reply:?}");
}
