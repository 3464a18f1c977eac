//! The data of events, and the messages to webhooks.

use serde_json::{Map, Value, json};

use crate::domain::{feed, webhooks};

/// Adds a schema per kind of event, and the section `webhooks`.
pub fn add(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    let mut data = Vec::new();
    for kind in feed::Kind::ALL {
        let name = kind.schema_name();
        data.push(reference(&name));
        let mut schema = kind.schema();
        schema["x-event-kind"] = kind.as_str().into();
        schemas[name] = schema;
    }
    data.push(json!({ "type": "object", "description": "Data of a kind that this version does not know." }));
    schemas["FeedEvent"]["properties"]["data"]["anyOf"] = data.into();
    let mut messages = Map::new();
    for message in webhooks::MESSAGES {
        schemas[message.schema_name] = message.schema();
        for kind in message.kinds {
            messages.insert((*kind).to_owned(), json!({ "post": received(&message) }));
        }
    }
    document["webhooks"] = messages.into();
}

/// Describes the request that a receiver gets.
fn received(message: &webhooks::MessageFormat) -> Value {
    let header = |name: &str, about: &str| {
        json!({
            "in": "header", "name": name, "required": true, "schema": { "type": "string" }, "description": about,
        })
    };
    json!({
        "tags": ["webhooks"],
        "summary": message.when,
        "parameters": [
            header("webhook-id", "Id of the delivery: the same in each attempt and replay"),
            header("webhook-timestamp", "Time of the attempt, in seconds since 1970"),
            header("webhook-signature", "Signatures according to Standard Webhooks, one per valid secret"),
        ],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": reference(message.schema_name) } },
        },
        "responses": {
            "2XX": { "description": "The message was received" },
            "410": { "description": "The webhook is disabled" },
            "default": { "description": "The delivery is tried again later" },
        },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
