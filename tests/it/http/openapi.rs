//! The API document: equal to the committed one, and with all routes.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;

use super::Fixture;

/// Such as `get /v1/tasks`.
type Operations = BTreeSet<String>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn described() -> Operations {
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, operations)| {
        operations.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
    });
    operations.collect()
}

/// Returns the routes of the router's files, such as `.route("/v1/tasks", get(list).post(add))`, and those of the
/// operations.
fn routed() -> Operations {
    let operations = dalsegno::operations::ALL.iter().map(|entry| &entry.spec);
    let mut found: Operations = operations
        .map(|spec| format!("{} {}", spec.method.as_str().to_lowercase(), spec.path))
        .collect();
    let mut folders = vec![root().join("src/http")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                // Pages are for browsers.
                true if path.ends_with("pages") => {}
                true => folders.push(path),
                false => found.extend(routes_of(&std::fs::read_to_string(path).unwrap())),
            }
        }
    }
    found
}

fn routes_of(code: &str) -> Operations {
    let mut found = Operations::new();
    for after in code.split(".route(").skip(1) {
        let mut depth = 1;
        let end = after.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let route = &after[..end.unwrap()];
        if route.starts_with("entry.spec.path") {
            continue;
        }
        if route.starts_with("OF_TURNS") {
            continue;
        }
        let path = route.split('"').nth(1).unwrap_or_else(|| panic!("no path in {route}"));
        for method in ["get", "post", "put", "patch", "delete"] {
            if route.contains(&format!("{method}(")) {
                found.insert(format!("{method} {path}"));
            }
        }
    }
    found
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let (routed, described) = (routed(), described());
    assert!(routed.len() > 30, "the test does not recognise the routes: {routed:?}");
    let missing: Vec<_> = routed.difference(&described).collect();
    assert!(missing.is_empty(), "routes without a description: {missing:?}");
    let gone: Vec<_> = described.difference(&routed).collect();
    assert!(gone.is_empty(), "described routes that do not exist: {gone:?}");
}

#[test]
fn every_operation_documents_its_noun_and_refusals() {
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let words = operation["summary"].as_str().unwrap_or_default();
            assert!(words.ends_with('.'), "{method} {path} has no description: {words}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{method} {path}: `{id}` is not unique");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let is_refusal = status.parse::<u16>().unwrap() >= 400;
                let codes = &answer["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]
                    ["code"]["enum"];
                let named = codes.as_array().is_some_and(|codes| !codes.is_empty());
                assert_eq!(is_refusal, named, "{method} {path} {status}");
            }
        }
    }
}

#[tokio::test]
async fn the_service_serves_its_own_openapi_document() {
    let fixture = Fixture::new().await;
    let reply = fixture.get("/v1/openapi.json").await;
    assert_eq!(reply.expect(200)["info"]["title"], "Dalsegno");
    assert!(reply.head.contains("content-type: application/json"), "{reply:?}");
}
