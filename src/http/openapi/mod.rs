//! The OpenAPI 3.1 document of the API, generated from the handlers and operations.
//!
//! Each handler describes its own part: parameters, bodies, answers and refusal codes. Parts that all of them share are
//! added here, so that no handler can omit them.

mod events;
mod operations;
mod refusals;

use std::{collections::HashSet, sync::LazyLock};

use axum::{
    Router,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::{Problem, RouterState, health, mcp};

pub(super) fn routes() -> Router<RouterState> {
    Router::new().route("/v1/openapi.json", get(openapi))
}

#[derive(OpenApi)]
#[openapi(
    paths(openapi),
    components(schemas(Problem)),
    info(
        title = "Dalsegno",
        description = "Durable conversations for LLM agents on a Postgres job queue. Refusals are problem documents (RFC 9457): \
                       programs decide by `code` and `retryable`.",
    ),
    tags(
        (name = "campaigns", description = "Pieces of work for a client"),
        (name = "tasks", description = "Tasks for agents, and their results"),
        (name = "flows", description = "Sets of dependent tasks, started from a template"),
        (name = "board", description = "The message board of a campaign"),
        (name = "memory", description = "Edicts, records and journals of a campaign"),
        (name = "sessions", description = "Conversations"),
        (name = "agents", description = "Agents, and their pauses"),
        (name = "evals", description = "Results of runs that compare variants of agents"),
        (name = "feed", description = "Live events of campaigns"),
        (name = "queue", description = "Queues, jobs, lanes and workers"),
        (name = "schedules", description = "Recurring work"),
        (name = "cleanup", description = "The nightly cleanup"),
        (name = "webhooks", description = "Subscribers to the ends of tasks"),
        (name = "credentials", description = "Credentials of providers, and their pauses"),
        (name = "keys", description = "API keys, and the audit log"),
        (name = "mcp", description = "The tools of agents, for MCP clients of people"),
        (name = "openapi", description = "This document"),
        (name = "probes", description = "Probes and metrics for operators"),
    ),
)]
struct ApiDoc;

/// Returns the document. The text changes only with the API.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(generate);
    &DOCUMENT
}

/// This document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    tag = "openapi",
    responses((status = 200, body = Object)),
)]
async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], document()).into_response()
}

fn generate() -> String {
    let mut api = ApiDoc::openapi();
    for part in [mcp::ApiDoc::openapi(), health::ApiDoc::openapi()] {
        api.merge(part);
    }
    // Values sort their keys, independent of the order of the parts.
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    document["components"]["securitySchemes"] = json!({
        "key": { "type": "http", "scheme": "bearer", "description": "An API key" },
    });
    document["security"] = json!([{ "key": [] }, {}]);
    operations::add(&mut document);
    events::add(&mut document);
    for operation in each_operation(&mut document) {
        refusals::complete(operation);
        name_answers(operation);
        remove_null_from_parameters(operation);
    }
    refer_to_items(&mut document);
    make_empty_bodies_optional(&mut document);
    format!("{document:#}\n")
}

fn each_operation(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.filter_map(|(_, path)| path.as_object_mut()).flatten().map(|(_, operation)| operation)
}

/// Fills in the description that OpenAPI requires for each answer: the summary of the operation.
fn name_answers(operation: &mut Value) {
    let summary = operation["summary"].clone();
    for (_, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
        if answer["description"].as_str().unwrap_or_default().is_empty() {
            answer["description"] = summary.clone();
        }
    }
}

/// Removes null from the types of parameters: an optional header or query parameter is omitted.
fn remove_null_from_parameters(operation: &mut Value) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        let schema = &mut parameter["schema"];
        if let Some(some) =
            schema["oneOf"].as_array().and_then(|of| of.iter().find(|one| one["type"] != "null"))
        {
            *schema = some.clone();
        }
        let kind = parameter.pointer_mut("/schema/type");
        if let Some(kind) = kind
            && let Some(first) = kind.get(0).cloned()
        {
            *kind = first;
        }
    }
}

/// Refers to the named schema of a page's items.
fn refer_to_items(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let names: HashSet<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas {
        if let Some(item) = name.strip_prefix("Listing_").filter(|item| names.contains(*item)) {
            let reference = format!("#/components/schemas/{item}");
            schema["properties"]["items"]["items"] = json!({ "$ref": reference });
        }
    }
}

/// Marks bodies without required fields as optional: an empty body is an object without fields.
fn make_empty_bodies_optional(document: &mut Value) {
    let schemas = document["components"]["schemas"].clone();
    for operation in each_operation(document) {
        let Some(body) = operation.get_mut("requestBody") else { continue };
        let schema = &body["content"]["application/json"]["schema"]["$ref"];
        let name = schema.as_str().and_then(|reference| reference.rsplit('/').next());
        if let Some(name) = name {
            body["required"] = schemas[name].get("required").is_some().into();
        }
    }
}
