//! The operations in the document: parameters, bodies and answers from their types, refusals from their `Spec`.

use serde_json::{Map, Value, json};

use crate::{
    domain::class::{Class, QUEUE_FULL},
    operations::{
        self, BAD_KEY, Entry, KEY_TAKEN, NO_KEY, Run, Spec, Success, TOO_MANY_WAITING,
        TOO_MANY_WAITING_PER_CLIENT, TypeSchema, status,
    },
};

/// Schema name of a body without fields.
const NOTHING: &str = "Nothing";
/// Refusals that carry `Retry-After`.
const RETRIED_LATER: [Class; 3] = [QUEUE_FULL, TOO_MANY_WAITING, TOO_MANY_WAITING_PER_CLIENT];

/// Adds each operation, and the schemas that it needs.
pub(super) fn add(document: &mut Value) {
    for entry in operations::ALL {
        let (input, output) = ((entry.input)(), (entry.output)());
        let (fields, body) = split(&entry.spec, &input);
        let method = entry.spec.method.as_str().to_ascii_lowercase();
        let about = operation(entry, &fields, &body, &input, &output);
        document["paths"][entry.spec.path][method] = about;
        let schemas = &mut document["components"]["schemas"];
        add_others(schemas, input.others);
        if let Some(body) = body.filter(|_| entry.spec.items.is_none()) {
            let name = body_name(&input.name, &body);
            schemas[name] = body;
        }
        if entry.spec.success != Success::NoContent && !matches!(entry.run, Run::Download(_)) {
            schemas[&output.name] = serde_json::to_value(output.schema).unwrap_or_default();
            add_others(schemas, output.others);
        }
    }
}

fn operation(
    entry: &Entry,
    parameters: &[Value],
    body: &Option<Value>,
    input: &TypeSchema,
    output: &TypeSchema,
) -> Value {
    let spec = &entry.spec;
    let words = serde_json::to_value(&input.schema).unwrap_or_default()["description"].take();
    let (summary, description) = match words.as_str().unwrap_or_default().split_once("\n\n") {
        Some((summary, description)) => (summary.to_owned(), Some(description.to_owned())),
        None => (words.as_str().unwrap_or_default().to_owned(), None),
    };
    let mut about = json!({ "operationId": spec.id, "tags": [spec.tag], "summary": summary });
    if let Some(description) = description {
        about["description"] = description.into();
    }
    let parameters: Vec<Value> = parameters.iter().cloned().chain(header(entry)).collect();
    if !parameters.is_empty() {
        about["parameters"] = parameters.into();
    }
    if let Some(body) = body {
        about["requestBody"] = match spec.items {
            None => {
                let schema = reference(&body_name(&input.name, body));
                let mut content = json!({ "application/json": { "schema": schema } });
                if spec.takes_files {
                    content["multipart/form-data"] = json!({ "schema": form(&schema) });
                }
                json!({ "content": content })
            }
            Some(field) => json!({ "required": true, "content": {
                "application/json": { "schema": body["properties"][field] },
                "application/x-ndjson": { "schema": { "type": "string" } },
            } }),
        };
    }
    about["responses"] = responses(entry, &output.name);
    about
}

/// Describes a form with files: the fields as JSON in the part `task`, and each file in a part of any name.
fn form(fields: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["task"],
        "properties": { "task": fields },
        "additionalProperties": { "type": "string", "contentMediaType": "application/octet-stream" },
    })
}

/// Returns the header parameter of an operation, if it has one.
fn header(entry: &Entry) -> Option<Value> {
    let (name, description, schema) = match (entry.spec.max_key_chars(), entry.run) {
        (Some(max_chars), _) => (
            "Idempotency-Key",
            format!("At most {max_chars} visible ASCII characters"),
            json!({ "type": "string", "maxLength": max_chars, "pattern": "^[!-~][ -~]*$" }),
        ),
        (None, Run::Stream { ids, .. }) => (
            "Last-Event-ID",
            "The id of the last event that was received: the stream continues after it".to_owned(),
            json!({ "type": "string", "pattern": ids }),
        ),
        (None, Run::Once(_) | Run::Download(_)) => return None,
    };
    Some(json!({
        "name": name, "in": "header", "required": false, "description": description, "schema": schema,
    }))
}

fn responses(entry: &Entry, output: &str) -> Value {
    let spec = &entry.spec;
    let mut answers = Map::new();
    let mut answer = json!({ "description": "" });
    if spec.success != Success::NoContent {
        answer["content"] = json!({ "application/json": { "schema": reference(output) } });
    }
    if let Run::Download(_) = entry.run {
        let file = json!({ "schema": { "type": "string", "format": "binary" } });
        let name = "`attachment`, with the name of the file";
        answer["content"] = json!({ "application/octet-stream": file });
        answer["headers"]["Content-Disposition"] =
            json!({ "description": name, "schema": { "type": "string" } });
    }
    if spec.location.is_some() {
        answer["headers"]["Location"] = json!({ "description": "Path of the created resource", "schema": { "type": "string" } });
    }
    if let Run::Stream { has_end, .. } = entry.run {
        let but = if has_end { "the last one, `end`," } else { "`begin`" };
        let words =
            format!("Each event has an id; the data of all events except {but} is a `{output}`");
        let content = json!({ "text/event-stream": { "schema": { "type": "string" } } });
        answer = json!({ "description": words, "content": content });
        if has_end {
            let words = "The client has already received the last event";
            answers.insert("204".to_owned(), json!({ "description": words }));
        }
        super::refusals::add(&mut answers, 400, "bad_last_event_id");
    }
    if spec.replays || spec.stores_output() {
        let header = json!({
            "description": "`true`: this is the response to an earlier request with the same key",
            "schema": { "type": "string" },
        });
        if spec.success == Success::Created {
            let mut replayed = answer.clone();
            replayed["description"] = "The response to an earlier request with the same key".into();
            replayed["headers"]["Idempotent-Replayed"] = header;
            answers.insert("200".to_owned(), replayed);
        } else {
            answer["headers"]["Idempotent-Replayed"] = header;
        }
    }
    if spec.max_key_chars().is_some() {
        super::refusals::add(&mut answers, 400, "bad_idempotency_key");
    } else if spec.reads_key() {
        super::refusals::add(&mut answers, 400, NO_KEY.code);
    }
    if spec.stores_output() {
        super::refusals::add(&mut answers, status(KEY_TAKEN.kind), KEY_TAKEN.code);
        super::refusals::add(&mut answers, status(BAD_KEY.kind), BAD_KEY.code);
    }
    answers.insert((spec.success as u16).to_string(), answer);
    for class in spec.refusals {
        super::refusals::add(&mut answers, status(class.kind), class.code);
    }
    for class in RETRIED_LATER.iter().filter(|class| spec.refusals.contains(class)) {
        answers[&status(class.kind).to_string()]["headers"] = json!({ "Retry-After": { "description": "Seconds", "schema": { "format": "int32", "type": "integer" } } });
    }
    Value::Object(answers)
}

/// Splits the input into parameters and the schema of the body, if the operation has one.
fn split(spec: &Spec, input: &TypeSchema) -> (Vec<Value>, Option<Value>) {
    let mut schema = serde_json::to_value(&input.schema).unwrap_or_default();
    let mut fields = schema["properties"].take().as_object().cloned().unwrap_or_default();
    let is_required =
        |name: &Value| schema["required"].as_array().is_some_and(|it| it.contains(name));
    let mut parameters: Vec<Value> = spec
        .path_fields()
        .map(|name| parameter("path", name, fields.remove(name).unwrap_or_default(), true))
        .collect();
    if !spec.method.has_body() {
        let query = fields.into_iter().map(|(name, field)| {
            let required = is_required(&json!(name));
            parameter("query", &name, field, required)
        });
        parameters.extend(query);
        return (parameters, None);
    }
    let required: Vec<&String> = fields.keys().filter(|name| is_required(&json!(name))).collect();
    let mut body = json!({ "type": "object", "additionalProperties": false });
    if !required.is_empty() {
        body["required"] = json!(required);
    }
    if let Some(example) = schema.get("example") {
        body["example"] = example.clone();
    }
    match fields.is_empty() {
        true => body["description"] = "Takes no fields.".into(),
        false => body["properties"] = Value::Object(fields),
    }
    (parameters, Some(body))
}

fn parameter(place: &str, name: &str, mut field: Value, required: bool) -> Value {
    let words = field.as_object_mut().and_then(|field| field.remove("description"));
    let mut parameter = json!({ "in": place, "name": name, "required": required, "schema": field });
    if let Some(words) = words {
        parameter["description"] = words;
    }
    parameter
}

fn body_name(input: &str, body: &Value) -> String {
    if body.get("properties").is_some() { input.to_owned() } else { NOTHING.to_owned() }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn add_others(schemas: &mut Value, others: Vec<(String, impl serde::Serialize)>) {
    for (name, schema) in others {
        schemas[name] = serde_json::to_value(schema).unwrap_or_default();
    }
}
