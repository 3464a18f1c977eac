//! The types of the API document in words.

use serde_json::Value;

use super::cells::sentences;

const REFERENCE: &str = "#/components/schemas/";

/// Returns the anchor of the heading `Type NAME`.
fn anchor(name: &str) -> String {
    format!("type-{}", name.to_lowercase())
}

/// Names a type: `text`, `integer from 1 to 200`, `list of` a type, a link to a named one.
pub(super) fn type_words(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.strip_prefix(REFERENCE)) {
        return format!("[{name}](#{})", anchor(name));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", plain(value));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|it| format!("`{}`", plain(it))).collect();
        return values.join(", ");
    }
    for (key, joint) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " with ")] {
        let Some(parts) = schema[key].as_array() else { continue };
        let words = parts.iter().map(type_words).filter(|words| words != "object");
        let words: Vec<_> = words.collect();
        if !words.is_empty() {
            return words.join(joint);
        }
    }
    match &schema["type"] {
        Value::Array(types) => {
            let names = types.iter().filter_map(Value::as_str);
            names.map(|name| simple(name, schema)).collect::<Vec<_>>().join(" or ")
        }
        Value::String(name) => simple(name, schema),
        _ => "any JSON value".to_owned(),
    }
}

/// Writes the fields of an object as rows of a table; those of its parts, too.
pub(super) fn field_rows(schema: &Value) -> String {
    let required = schema["required"].as_array();
    // Answers always have their fields; only inputs, which refuse unknown ones, need the word.
    let is_input = schema["additionalProperties"] == false;
    let is_required =
        |name: &str| is_input && required.is_some_and(|all| all.iter().any(|it| it == name));
    let mut rows = String::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        match part.get("$ref") {
            Some(_) => rows += &format!("| | all fields of {} | |\n", type_words(part)),
            None => rows += &field_rows(part),
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = if is_required(name) { ", required" } else { "" };
        let meaning = description_of(field);
        rows += &format!("| `{name}` | {}{required} | {} |\n", type_words(field), meaning);
    }
    rows
}

/// Finds the description of a field, which stands beside its type or in the alternative that is not null.
fn description_of(field: &Value) -> String {
    let parts = ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| field[*key].as_array());
    let own = std::iter::once(field).chain(parts.flatten());
    let found = own.into_iter().find_map(|it| it["description"].as_str());
    sentences(found.unwrap_or_default())
}

fn simple(name: &str, schema: &Value) -> String {
    match name {
        "array" => format!("list of {}", type_words(&schema["items"])),
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                format!("object with values: {}", type_words(values))
            }
            _ => inline_object(schema),
        },
        "string" => text_words(schema),
        "integer" | "number" => format!("{name}{}", range_words(schema)),
        name => name.to_owned(),
    }
}

fn inline_object(schema: &Value) -> String {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let names: Vec<_> = fields.map(|(name, of)| format!("`{name}`: {}", type_words(of))).collect();
    if names.is_empty() { "object".to_owned() } else { format!("object ({})", names.join(", ")) }
}

fn text_words(schema: &Value) -> String {
    let kind = match schema["format"].as_str() {
        Some("uuid") => "UUID",
        Some("date-time") => "time",
        Some("date") => "date",
        Some("binary") => "bytes",
        _ => "text",
    };
    match schema["maxLength"].as_u64() {
        Some(n) => format!("{kind} of up to {n} characters"),
        None => kind.to_owned(),
    }
}

fn range_words(schema: &Value) -> String {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) if least != 0 => format!(" from {least}"),
        (None, Some(most)) => format!(" up to {most}"),
        _ => String::new(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_named_in_words() {
        for (schema, words) in [
            (json!({ "$ref": "#/components/schemas/Task" }), "[Task](#type-task)"),
            (json!({ "type": ["string", "null"], "format": "uuid" }), "UUID or null"),
            (json!({ "type": "integer", "minimum": 1, "maximum": 200 }), "integer from 1 to 200"),
            (json!({ "type": "array", "items": { "enum": ["a", "b"] } }), "list of `a`, `b`"),
            (json!({ "type": "string", "maxLength": 9 }), "text of up to 9 characters"),
            (json!({ "oneOf": [{ "type": "boolean" }, { "type": "null" }] }), "boolean or null"),
            (
                json!({ "allOf": [{ "type": "string" }, { "type": "object", "description": "x" }] }),
                "text",
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "number" } }),
                "object with values: number",
            ),
            (json!({}), "any JSON value"),
        ] {
            assert_eq!(type_words(&schema), words, "{schema}");
        }
    }

    #[test]
    fn a_field_has_the_description_of_its_alternative() {
        let schema = json!({ "type": "object", "additionalProperties": false, "required": ["mode"], "properties": {
            "mode": { "oneOf": [{ "$ref": "#/components/schemas/Mode", "description": "How it begins." }, { "type": "null" }] } } });
        let row = "| `mode` | [Mode](#type-mode) or null, required | How it begins. |\n";
        assert_eq!(field_rows(&schema), row);
    }
}
