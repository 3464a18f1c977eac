//! The parts of requests, from the API document.

use std::collections::BTreeSet;

use dalsegno::{
    domain::keys::Scope,
    http::scopes::{self, RequiredScope},
};
use serde_json::Value;

/// An operation that an `enqueue` key may call.
pub struct Operation {
    pub id: String,
    /// Such as `path id`, `query wait`, `header Idempotency-Key`, `body depends_on[].key`.
    pub parts: BTreeSet<String>,
}

pub fn of_enqueue() -> Vec<Operation> {
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            let need = scopes::need(&method.to_uppercase(), path);
            if matches!(need, Some(RequiredScope::Any(any)) if any.contains(&Scope::Enqueue)) {
                operations.push(operation(&document, about));
            }
        }
    }
    operations
}

fn operation(document: &Value, about: &Value) -> Operation {
    let mut parts = BTreeSet::new();
    for parameter in about["parameters"].as_array().into_iter().flatten() {
        let word = |key: &str| parameter[key].as_str().unwrap();
        parts.insert(format!("{} {}", word("in"), word("name")));
    }
    let contents = about["requestBody"]["content"].as_object().into_iter().flatten();
    // A form has the fields of the JSON body in one of its parts.
    for content in contents.filter(|(media_type, _)| *media_type != "multipart/form-data") {
        fields(document, &content.1["schema"], "body ", &mut parts);
    }
    Operation { id: about["operationId"].as_str().unwrap().to_owned(), parts }
}

/// Collects the leaf fields of a schema. A schema of several forms has the fields of all.
fn fields(document: &Value, schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return fields(document, target, at, found);
    }
    let mut is_leaf = true;
    for form in ["oneOf", "anyOf", "allOf"] {
        for form in schema[form].as_array().into_iter().flatten() {
            is_leaf = false;
            fields(document, form, at, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        is_leaf = false;
        let dot = if at.ends_with(' ') { "" } else { "." };
        fields(document, field, &format!("{at}{dot}{name}"), found);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            is_leaf = false;
            fields(document, &schema[key], &format!("{at}{mark}"), found);
        }
    }
    if is_leaf && schema["type"] != "null" {
        found.insert(at.to_owned());
    }
}
