//! Schemas of answers, in the part of JSON Schema that the API enforces.

use serde_json::{Value, json};

/// Keywords that the API refuses. The answer is checked against the whole schema anyway.
const REFUSED: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
];
/// Keywords whose values are schemas by name.
const BY_NAME: [&str; 3] = ["properties", "$defs", "definitions"];

/// Returns the schema without keywords that the API refuses, and with closed objects, which it requires.
pub(super) fn enforceable(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut kept: serde_json::Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| !REFUSED.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), keyword(key, value)))
                .collect();
            if kept.get("type").is_some_and(is_object) || kept.contains_key("properties") {
                kept.insert("additionalProperties".to_owned(), json!(false));
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

/// Returns the value of a keyword.
fn keyword(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(schemas) if BY_NAME.contains(&key) => {
            schemas.iter().map(|(name, schema)| (name.clone(), enforceable(schema))).collect()
        }
        Value::Object(_) if key != "const" && key != "default" => enforceable(value),
        Value::Array(schemas) if matches!(key, "anyOf" | "oneOf" | "allOf" | "prefixItems") => {
            schemas.iter().map(enforceable).collect()
        }
        other => other.clone(),
    }
}

fn is_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|it| it == "object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_refused_keywords_left_out() {
        let schema = json!({
            "type": "object",
            "properties": {
                "minimum": { "type": "integer", "minimum": 1 },
                "list": { "type": "array", "items": { "type": "object", "properties": {} }, "maxItems": 3 },
            },
            "required": ["minimum"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "minimum": { "type": "integer" },
                "list": {
                    "type": "array",
                    "items": { "type": "object", "properties": {}, "additionalProperties": false },
                },
            },
            "required": ["minimum"],
            "additionalProperties": false,
        });
        assert_eq!(enforceable(&schema), expected);
        assert_eq!(enforceable(&expected), expected);
    }
}
