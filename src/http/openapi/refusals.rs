//! Refusals in the document: one schema for all, and the codes of each operation by status.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// Refusals of authentication and authorisation.
const OF_KEYS: [(u16, &[&str]); 3] = [
    (401, &["unauthenticated", "bad_key"]),
    (403, &["missing_scope", "key_is_bound"]),
    (429, &["too_many_requests", "too_many_bad_keys"]),
];
/// Refusals that precede the handler, of probes, too.
const BEFORE_ALL: [(u16, &[&str]); 3] = [
    (400, &["duplicate_header", "bad_forwarding", "bad_query"]),
    (414, &["uri_too_long"]),
    (431, &["headers_too_large"]),
];
/// Refusals of all operations except probes, from outside of their handlers.
const ALWAYS: [(u16, &[&str]); 5] = [
    (400, &["bad_body"]),
    (403, &["unknown_host", "foreign_origin"]),
    (500, &["internal"]),
    (
        503,
        &[
            "starting",
            "database_unreachable",
            "database_busy",
            "database_conflict",
            "database_full",
            "database_read_only",
        ],
    ),
    (504, &["timeout"]),
];
/// Refusals of operations with a body.
const OF_BODIES: [(u16, &[&str]); 4] =
    [(400, &["bad_json"]), (413, &["body_too_large"]), (415, &["not_json"]), (422, &["bad_field"])];

/// Adds the shared refusals to an operation, and gives each refusal its schema.
pub(super) fn complete(operation: &mut Value) {
    // Operations without authentication have an empty requirement of their own.
    let is_open = operation["security"].is_array();
    let is_probe = operation["tags"][0] == "probes" || operation["tags"][0] == "openapi";
    let mut common: Vec<(u16, &str)> = spread(&BEFORE_ALL).collect();
    if !is_probe {
        common.extend(spread(&ALWAYS));
        common.extend(of_parameters(operation).map(|code| (400, code)));
    }
    if !is_open {
        common.extend(spread(&OF_KEYS));
    }
    if operation.get("requestBody").is_some() {
        common.extend(spread(&OF_BODIES));
    }
    let Some(answers) = operation["responses"].as_object_mut() else { return };
    for (status, code) in common {
        add(answers, status, code);
    }
    for (status, answer) in answers.iter_mut() {
        if let Some(status) = status.parse().ok().filter(|status: &u16| *status >= 400) {
            describe(status, answer);
        }
    }
}

fn spread<'a>(table: &'a [(u16, &'a [&'a str])]) -> impl Iterator<Item = (u16, &'a str)> {
    table.iter().flat_map(|(status, codes)| codes.iter().map(|code| (*status, *code)))
}

fn of_parameters(operation: &Value) -> impl Iterator<Item = &'static str> + use<> {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let mut codes: Vec<&str> = parameters
        .iter()
        .filter_map(|parameter| match (parameter["in"].as_str()?, parameter["name"].as_str()?) {
            ("path", "id") => Some("bad_id"),
            ("path", _) if parameter["schema"]["format"] == "uuid" => Some("bad_id"),
            ("path", _) if parameter["schema"]["type"] == "integer" => Some("bad_id"),
            ("path", _) => Some("bad_name"),
            _ => None,
        })
        .collect();
    codes.dedup();
    codes.into_iter()
}

pub(super) fn add(answers: &mut Map<String, Value>, status: u16, code: &str) {
    let answer = answers.entry(status.to_string()).or_insert_with(|| json!({ "description": "" }));
    let mut words = answer["description"].as_str().unwrap_or_default().to_owned();
    if !words.is_empty() {
        words.push_str(", ");
    }
    words.push_str(&format!("`{code}`"));
    answer["description"] = words.into();
}

/// Builds the schema of an answer from the codes in backticks of its description.
fn describe(status: u16, answer: &mut Value) {
    let words = answer["description"].as_str().unwrap_or_default().to_owned();
    let codes: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
    let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    answer["content"] = json!({
        "application/problem+json": {
            "schema": {
                "allOf": [
                    { "$ref": "#/components/schemas/Problem" },
                    { "properties": { "status": { "const": status }, "code": { "enum": codes } } },
                ],
            },
        },
    });
    answer["description"] = format!("{}: {words}", title.unwrap_or("Refused")).into();
}
